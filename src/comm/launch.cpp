#include "octavo/comm/launch.h"

#include <charconv>
#include <cstdint>
#include <limits>

#include "octavo/base/error.h"
#include "octavo/base/random.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& value, const std::string& rule) {
  throw UsageError(cat("[comm] ", name, "=", in_quotes(value), ": ", rule));
}

class Variables {
 public:
  explicit Variables(const VariableReader& read) : read_(read) {}

  std::optional<std::string> text(const std::string& name) const { return read_(name); }
  bool has(const std::string& name) const { return read_(name).has_value(); }

  std::string needed(const std::string& name, const std::string& because) const {
    const std::optional<std::string> value = read_(name);
    if (!value) throw UsageError(cat("[comm] ", name, " is not set, but ", because, "; set it on every rank."));
    if (value->empty()) refuse(name, *value, cat("must not be empty, for ", because, "."));
    return *value;
  }

  int number(const std::string& name, const std::string& because, int least, int most) const {
    const std::optional<std::string> value = read_(name);
    if (!value) throw UsageError(cat("[comm] ", name, " is not set, but ", because, "; set it on every rank."));
    return parsed(name, *value, least, most);
  }

  static int parsed(const std::string& name, const std::string& value, int least, int most) {
    int result = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error != std::errc() || end != value.data() + value.size() || result < least || result > most) {
      refuse(name, value, cat("must be a whole number from ", least, " to ", most, "."));
    }
    return result;
  }

 private:
  const VariableReader& read_;
};

constexpr int kMostRanks = std::numeric_limits<int>::max();

/// Rank and size from two variables that come together.
void read_place(const Variables& variables, const std::string& rank, const std::string& size, Launch& launch) {
  const bool has_rank = variables.has(rank);
  const std::string because = cat(has_rank ? rank : size, " is");
  launch.world_size = variables.number(size, because, 1, kMostRanks);
  launch.rank = variables.number(rank, because, 0, launch.world_size - 1);
}

/// The same port on all ranks of a job, another for most other jobs: below the ports that systems give out themselves.
int port_of(const std::string& job) {
  constexpr int kFirst = 20000, kNumPorts = 12000;
  return kFirst + static_cast<int>(hash_key(0, job) % kNumPorts);
}

void read_master(const Variables& variables, Launch& launch) {
  if (variables.has("MASTER_ADDR")) launch.master_address = variables.needed("MASTER_ADDR", "the ranks must meet");
  if (variables.has("MASTER_PORT")) launch.master_port = variables.number("MASTER_PORT", "", 1, 65535);
}

/// "node[07-09,12],other3" -> "node07".
std::string first_host(const std::string& name, const std::string& list) {
  std::string host;
  for (std::size_t at = 0; at < list.size() && list[at] != ',';) {
    if (list[at] != '[') {
      host += list[at++];
      continue;
    }
    const std::size_t end = list.find(']', at);
    if (end == std::string::npos) refuse(name, list, "has a bracket that does not close.");
    const std::string ranges = list.substr(at + 1, end - at - 1);
    host += ranges.substr(0, ranges.find_first_of(",-"));
    at = end + 1;
  }
  if (host.empty()) refuse(name, list, "names no host.");
  return host;
}

Launch read_plain(const Variables& variables) {
  Launch launch;
  const bool agent = variables.text("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True";
  launch.launcher = variables.has("TORCHELASTIC_RUN_ID") ? "torchrun" : "variables";
  read_place(variables, "RANK", "WORLD_SIZE", launch);
  launch.master_address = variables.needed("MASTER_ADDR", "RANK is");
  launch.master_port = variables.number("MASTER_PORT", "RANK is", 1, 65535);
  launch.store_is_hosted = agent;
  launch.attempt = variables.text("TORCHELASTIC_RESTART_COUNT").value_or("");
  return launch;
}

Launch read_mpi(const Variables& variables, bool open_mpi) {
  Launch launch;
  launch.launcher = "mpirun";
  const std::string rank = open_mpi ? "OMPI_COMM_WORLD_RANK" : "PMI_RANK";
  const std::string size = open_mpi ? "OMPI_COMM_WORLD_SIZE" : "PMI_SIZE";
  const std::string local = open_mpi ? "OMPI_COMM_WORLD_LOCAL_SIZE" : "MPI_LOCALNRANKS";
  read_place(variables, rank, size, launch);
  read_master(variables, launch);
  const int local_size = variables.has(local) ? variables.number(local, "", 1, kMostRanks) : launch.world_size;
  if (launch.master_address.empty() && local_size != launch.world_size) {
    throw UsageError(cat("[comm] MASTER_ADDR is not set, but ", size, "=", launch.world_size, " and ", local, "=",
                         local_size, ": the ranks are on several machines; set MASTER_ADDR to an address of rank 0's, ",
                         "and pass it on with mpirun -x MASTER_ADDR."));
  }
  if (launch.master_address.empty()) launch.master_address = "127.0.0.1";
  if (launch.master_port == 0) {
    std::string job;
    for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "PMI_KVS"}) {
      if (job.empty()) job = variables.text(name).value_or("");
    }
    launch.master_port = port_of(cat("mpirun ", job));
  }
  return launch;
}

/// A task that srun started has a step of its own; the shell of a batch script or of an allocation has none, or a
/// number at the end of the range.
bool is_slurm_task(const Variables& variables) {
  const std::optional<std::string> step = variables.text("SLURM_STEP_ID");
  if (!variables.has("SLURM_PROCID") || !step) return false;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(step->data(), step->data() + step->size(), number);
  constexpr std::uint32_t kFirstSpecialStep = 0xfffffff0;
  return error == std::errc() && end == step->data() + step->size() && number < kFirstSpecialStep;
}

Launch read_slurm(const Variables& variables) {
  Launch launch;
  launch.launcher = "srun";
  read_place(variables, "SLURM_PROCID", variables.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS",
             launch);
  read_master(variables, launch);
  if (launch.master_address.empty()) {
    const std::string list = variables.has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_NODELIST";
    launch.master_address = first_host(list, variables.needed(list, "SLURM_PROCID is"));
  }
  if (launch.master_port == 0) {
    launch.master_port = port_of(cat("srun ", variables.needed("SLURM_JOB_ID", "SLURM_PROCID is"), ".",
                                     variables.needed("SLURM_STEP_ID", "SLURM_PROCID is")));
  }
  return launch;
}

int ranks_on_machine(const Variables& variables, const Launch& launch) {
  for (const char* name :
       {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"}) {
    if (variables.has(name)) return variables.number(name, "", 1, launch.world_size);
  }
  return launch.world_size;
}

/// Two launchers' variables that name different ranks leave open which one is meant.
void check_agreement(const Variables& variables, const Launch& launch) {
  if (!variables.has("OMPI_COMM_WORLD_RANK") || launch.launcher != "variables") return;
  Launch other;
  read_place(variables, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", other);
  if (other.rank == launch.rank && other.world_size == launch.world_size) return;
  refuse("RANK", cat(launch.rank),
         cat("contradicts OMPI_COMM_WORLD_RANK=", other.rank, " of ", other.world_size,
             "; unset RANK and WORLD_SIZE under mpirun."));
}

}  // namespace

std::optional<Launch> read_launch(const VariableReader& variable) {
  const Variables variables(variable);
  std::optional<Launch> launch;
  if (variables.has("RANK") || variables.has("WORLD_SIZE")) {
    launch = read_plain(variables);
    check_agreement(variables, *launch);
  } else if (variables.has("OMPI_COMM_WORLD_RANK") || variables.has("OMPI_COMM_WORLD_SIZE")) {
    launch = read_mpi(variables, /*open_mpi=*/true);
  } else if (is_slurm_task(variables)) {
    launch = read_slurm(variables);
  } else if (variables.has("PMI_RANK") || variables.has("PMI_SIZE")) {
    launch = read_mpi(variables, /*open_mpi=*/false);
  }
  if (!launch) return std::nullopt;
  launch->ranks_on_machine = ranks_on_machine(variables, *launch);
  launch->interface_name = variables.text("GLOO_SOCKET_IFNAME").value_or("");
  if (launch->interface_name.empty() &&
      (launch->master_address == "127.0.0.1" || launch->master_address == "localhost")) {
    launch->interface_name = "lo";
  }
  return launch;
}

}  // namespace octavo
