// What this machine's matrix products reach: the yardstick of utilisation.
#pragma once

#include "octavo/layout/element_type.h"

namespace octavo {

/// FLOP/s of the best of several products [N, N] by [N, N] in `compute`, with this thread's operator threads, over
/// about `seconds`. When a rank on every core measures at once, the sum over ranks is the peak of the machine.
double measure_matmul_peak(ElementType compute, double seconds = 0.15);

}  // namespace octavo
