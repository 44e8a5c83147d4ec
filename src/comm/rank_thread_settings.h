// What libtorch must be told on every thread that is a rank.
#pragma once

namespace octavo {

/// Gradients off, denormals flushed, `num_threads` for operations: all three are settings of the calling thread. The
/// thread count must come before its first operation: a product of matrices would use every core otherwise.
void set_up_rank_thread(int num_threads);

}  // namespace octavo
