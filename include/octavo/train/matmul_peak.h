// What this machine's matrix products reach: the yardstick of utilisation.
#pragma once

#include "octavo/layout/element_type.h"

namespace octavo {

/// FLOP/s of the best of several products [N, N] by [N, N] in `compute`, with this thread's operator threads, over
/// about `seconds`. When every rank measures at once, the sum over ranks is the peak of the machine as they share it.
double measure_matmul_peak(ElementType compute, double seconds = 0.15);

}  // namespace octavo
