#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "octavo/base/text.h"

namespace octavo::cli {

Progress::Progress(std::int64_t total, bool quiet)
    : total_(total), quiet_(quiet), terminal_(isatty(STDOUT_FILENO) == 1) {}

void Progress::update(std::int64_t done, const std::string& text) {
  if (quiet_) return;
  if (!terminal_) {
    const std::int64_t every = std::max<std::int64_t>(1, total_ / 10);
    if (done == 1 || done % every == 0 || done == total_)
      std::cout << "step " << done << "/" << total_ << "  " << text << std::endl;
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (done < total_ && now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  constexpr int kWidth = 24;
  const int filled = static_cast<int>(kWidth * done / std::max<std::int64_t>(1, total_));
  std::cout << "\r\033[K[" << std::string(filled, '#') << std::string(kWidth - filled, '.') << "] " << done << "/"
            << total_ << "  " << text << std::flush;
  drawn_ = true;
}

void Progress::note(const std::string& text) {
  if (quiet_) return;
  if (drawn_) std::cout << "\r\033[K";
  drawn_ = false;
  std::cout << text << std::endl;
}

void Progress::finish() {
  if (drawn_) std::cout << std::endl;
  drawn_ = false;
}

}  // namespace octavo::cli
