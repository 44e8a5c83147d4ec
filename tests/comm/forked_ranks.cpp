#include "comm/forked_ranks.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "comm/threads/poison.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/comm/run_process.h"

namespace octavo {
namespace {

/// A port that was free a moment ago.
int free_port() {
  const int socket_fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (bind(socket_fd, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(socket_fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw InternalError("no free port");
  }
  close(socket_fd);
  return ntohs(address.sin_port);
}

constexpr char kSeparator = '\x1e';

std::string describe(const char* type, bool caused_by_peer, const std::string& text, const std::string& report) {
  return cat(type, kSeparator, caused_by_peer ? 1 : 0, kSeparator, text, kSeparator, report);
}

std::string run_rank(const ForkedRanks& options, int rank, int port, const std::function<void(World&)>& body) {
  try {
    run_process({.launch = {.rank = rank,
                            .world_size = options.num_ranks,
                            .master_address = "127.0.0.1",
                            .master_port = port,
                            .interface_name = "lo",
                            .store_is_hosted = false,
                            .launcher = "test",
                            .attempt = ""},
                 .deadline = options.deadline,
                 .check_calls = options.check_calls},
                body);
  } catch (const PeerFailure& error) {
    return describe("CommError", true, error.what(), error.report());
  } catch (const CommError& error) {
    return describe("CommError", false, error.what(), error.report());
  } catch (const UsageError& error) {
    return describe("UsageError", false, error.what(), "");
  } catch (const CheckFailed& error) {
    return describe("CheckFailed", false, error.what(), "");
  } catch (const InternalError& error) {
    return describe("InternalError", false, error.what(), "");
  } catch (const std::exception& error) {
    return describe("exception", false, error.what(), "");
  }
  return "";
}

[[noreturn]] void be_rank(const ForkedRanks& options, int rank, int port, int pipe_end,
                          const std::function<void(World&)>& body) {
  alarm(60);  // a hanging rank must not hang the test
  const std::string result = run_rank(options, rank, port, body);
  std::size_t written = 0;
  while (written < result.size()) {
    const ssize_t count = write(pipe_end, result.data() + written, result.size() - written);
    if (count <= 0) break;
    written += count;
  }
  _exit(0);
}

}  // namespace

std::vector<ForkedEnd> run_forked(const ForkedRanks& options, const std::function<void(World&)>& body,
                                  const std::function<void(const std::vector<pid_t>&)>& meanwhile) {
  const auto begin = std::chrono::steady_clock::now();
  const int port = free_port();
  std::vector<pid_t> processes;
  std::vector<int> pipes;
  std::fflush(nullptr);
  for (int rank = 0; rank < options.num_ranks; ++rank) {
    int ends[2];
    if (pipe(ends) != 0) throw InternalError("no pipe");
    const pid_t process = fork();
    if (process == 0) {
      close(ends[0]);
      be_rank(options, rank, port, ends[1], body);
    }
    close(ends[1]);
    processes.push_back(process);
    pipes.push_back(ends[0]);
  }
  if (meanwhile) meanwhile(processes);
  std::vector<ForkedEnd> ended(options.num_ranks);
  std::vector<std::string> results(options.num_ranks);
  std::vector<pollfd> open;
  for (const int end : pipes) open.push_back({.fd = end, .events = POLLIN, .revents = 0});
  // A pipe ends with its process, or, if that was stopped for good, when this test ends it.
  for (int num_open = options.num_ranks; num_open > 0;) {
    int status = 0;
    for (int rank = 0; rank < options.num_ranks; ++rank) {
      if (open[rank].fd >= 0 && num_open == 1 && waitpid(processes[rank], &status, WUNTRACED | WNOHANG) > 0 &&
          WIFSTOPPED(status)) {
        kill(processes[rank], SIGKILL);
      }
    }
    if (poll(open.data(), open.size(), 20) <= 0) continue;
    for (int rank = 0; rank < options.num_ranks; ++rank) {
      if (open[rank].fd < 0 || open[rank].revents == 0) continue;
      char buffer[4096];
      const ssize_t count = read(pipes[rank], buffer, sizeof(buffer));
      if (count > 0) {
        results[rank].append(buffer, count);
        continue;
      }
      close(pipes[rank]);
      open[rank].fd = -1;
      --num_open;
      ended[rank].seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
  }
  for (int rank = 0; rank < options.num_ranks; ++rank) {
    int status = 0;
    while (waitpid(processes[rank], &status, 0) > 0 && !WIFEXITED(status) && !WIFSIGNALED(status)) {
    }
    if (WIFSIGNALED(status)) ended[rank].signal = WTERMSIG(status);
    if (results[rank].empty()) continue;
    const std::vector<std::string> parts = split(results[rank], kSeparator);
    ended[rank].type = parts[0];
    ended[rank].caused_by_peer = parts[1] == "1";
    ended[rank].text = parts[2];
    ended[rank].report = parts[3];
  }
  return ended;
}

void run_forked_or_throw(const ForkedRanks& options, const std::function<void(World&)>& body) {
  const std::vector<ForkedEnd> ended = run_forked(options, body);
  const ForkedEnd* first = nullptr;
  for (int rank = 0; rank < options.num_ranks; ++rank) {
    const ForkedEnd& end = ended[rank];
    if (end.signal != 0) throw InternalError(cat("rank ", rank, " was killed by signal ", end.signal));
    if (end.type.empty()) continue;
    if (first == nullptr || (first->caused_by_peer && !end.caused_by_peer)) first = &end;
  }
  if (first == nullptr) return;
  if (first->type == "CommError") throw CommError(first->text);
  if (first->type == "UsageError") throw UsageError(first->text);
  if (first->type == "CheckFailed") throw CheckFailed(first->text);
  throw InternalError(first->text);
}

}  // namespace octavo
