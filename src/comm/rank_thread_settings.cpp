#include "comm/rank_thread_settings.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

namespace octavo {

void set_up_rank_thread(int num_threads) {
  at::set_num_threads(num_threads);
  c10::GradMode::set_enabled(false);
  at::globalContext().setFlushDenormal(true);
}

}  // namespace octavo
