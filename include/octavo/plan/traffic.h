// What a rank will move in one training step or one evaluation: the rows of its ledger before it runs. The dry run and
// `octavo train` hold these against what was booked; a plan that is not what runs is a failing test.
//
// Letters
//   R, T, D   ranks of the data, of the tensor and of the fold axis; c = (n-1)/n for the n ranks of a row's group
//   e, g      bytes of an element of the compute type, and of a gradient sum (4; 8 in float64)
//   N         tokens of a micro-batch that this rank takes; its batch shard is cut into micro-batches, the last may be
//             smaller. A rank without sequences has no micro-batch and takes part in the rows "per step" alone
//   h, L      hidden size, layers; B = 2 L blocks between embedding and head (a mixer and an MLP per layer)
//   A         N h e: one activation
//   A'        T ceil(N/T) h e: one activation whose tokens are filled up to a multiple of T
//   P_b       elements of gradient bucket b, filled up to a multiple of 32 R; V: head rows computed here
//
// Every message is a collective; its bytes are those of trace/cost.h: all_reduce of M moves 2 c M, reduce_scatter and
// all_gather c M. What follows lists messages M. Groups of one rank move nothing and have no row.
//
//   group      purpose      kind            messages M of a training step
//   data       gradients    all_reduce      ZeRO 0: P_b g for each bucket
//   data       gradients    reduce_scatter  ZeRO 1: P_b g for each bucket
//   data       weights      all_gather      ZeRO 1: P_b e for each bucket
//   tensor     activations  all_reduce      form allreduce, per micro-batch, A each: the embedding's rows, every
//                                           block's output and the gradient of its input, the gradient of the
//                                           head's input: 2 + 2B
//   tensor     activations  all_gather      form scatter, per micro-batch, A' each: every block's input, again in
//                                           backward, and the gradient of its output; the head's input; the gradient of
//                                           the embedding's rows: 2 + 3B
//   tensor     activations  reduce_scatter  form scatter, per micro-batch, A' each: as all_reduce above: 2 + 2B
//   tensor     loss         all_gather      per micro-batch and chunk of n <= max(256, 64 MiB / (V e)) of its tokens:
//                                           T 2 n g (log-sum-exp and picked logit of every token and rank); one chunk
//                                           where the head's rows come in several steps
//   tensor,    gradients    all_reduce      per step, for each of the placement's sums (layout/placement.h): its
//   tensor/S                                elements times g, one packed message: gradients that cut units or cut
//                                           tokens leave partial (q_norm, k_norm; every norm under scatter), and
//                                           those of KV heads that S neighbours hold alike under `replicate`
//   Rows of the fold axis are those of each block's form, and of the embedding and the head as blocks, in each
//   direction (layout/fold_choice.h): by weights
//   fold       weights      broadcast       form weights, blocks that do not go round (layout/fold_steps.h: attention,
//                                           and fewer units than D), per micro-batch and pass over a block: the rows of
//                                           each panel, step and owner times e: W e in all for W elements. Passes:
//                                           forward and backward, of the embedding forward alone
//   fold       gradients    reduce          the same blocks, per micro-batch: the same rows times g
//   fold       weights      send, recv      form weights, blocks that go round, per micro-batch, pass and panel: D-1 of
//                                           each. Round the ring rank p sends the rows of every rank's part but that of
//                                           p-1; direct, and always where ranks share memory, its own D-1 times; times
//                                           e. So c W e in the mean over the ranks
//   fold       gradients    send, recv      the same blocks, per micro-batch and panel: D-1 of each: the rows of every
//                                           rank's part but its own, times g
//   fold       keys_values  all_gather      per micro-batch, attention block and step of U heads of width d, twice
//                                           (forward, backward): 2 S U d e for S positions, those of no token included
//   fold       keys_values  reduce_scatter  the same once
//   by activations, for S positions, A = S h e, per micro-batch:
//   fold       activations  all_gather      A: every block's input, again in backward, and the gradient of its output;
//                                           the head's input; the gradient of the embedding's rows
//   fold       activations  reduce_scatter  A: the embedding's rows, every block's output and the gradient of its
//                                           input, the gradient of the head's input
//   fold       loss         all_gather      as that of tensor, of D states; both then have chunks of the S positions,
//                                           and V is that of the rank with most rows
//   fold       weights      send, recv      per pass and message of rows that one rank computes with and another
//                                           stores (layout/fold_units.h), times e: this rank's sends, and its receives
//                                           at 0 bytes
//   fold       gradients    send, recv      the same the other way, times g, in backward
//   world      norm         all_reduce      per step: 16 (loss and squared gradient norm, float64)
//
// Recomputation moves nothing more: a block's forward collectives are not part of it, but for the gathered input, which
// scatter gathers again under every stash policy.
//
// An evaluation of K batches has, per batch and micro-batch: activations all_reduce 1 + B (allreduce), all_gather 1 + B
// and reduce_scatter 1 + B (scatter), the loss row as above, and what the fold axis moves forward; and once, over
// world, purpose loss, all_reduce of 16.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "octavo/layout/element_type.h"
#include "octavo/layout/fold_choice.h"
#include "octavo/layout/layout.h"
#include "octavo/layout/param_table.h"
#include "octavo/trace/ledger.h"

namespace octavo {

/// What a step is made of.
struct StepShape {
  std::int64_t batch;            // sequences over all ranks, >= 0
  std::int64_t sequence_length;  // tokens, >= 1
  std::int64_t micro_batch;      // sequences that a rank takes through the model at once, >= 1
  ElementType compute;
  bool recomputes = false;      // forward keeps each block's input alone
  bool reads_in_place = false;  // ranks read each other's memory where it lies
  bool shares_memory = true;    // of the backend: ranks read what is lent where it lies
};

/// What the fold axis' choice of forms depends on, for a micro-batch of so many positions.
FoldWork fold_work(const StepShape& shape, std::int64_t positions, bool training);

/// The rows that `rank`'s ledger will hold after a step: group, purpose, kind, count and logical bytes; the rest is
/// zero. In no order that matters. Throws UsageError for a rank outside the layout and for a layout that refuses the
/// model, InternalError for a shape out of range.
std::vector<LedgerRow> predict_step_traffic(const ParamTable& table, const Layout& layout, const StepShape& shape,
                                            int rank);

/// The same for an evaluation of `num_batches` batches of this shape.
std::vector<LedgerRow> predict_evaluation_traffic(const ParamTable& table, const Layout& layout, const StepShape& shape,
                                                  int rank, std::int64_t num_batches);

}  // namespace octavo
