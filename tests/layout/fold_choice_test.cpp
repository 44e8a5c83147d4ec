#include "octavo/layout/fold_choice.h"

#include <doctest/doctest.h>

#include <string>

#include "octavo/layout/fold_units.h"
#include "octavo/layout/placement.h"

using namespace octavo;

namespace {

constexpr std::int64_t kHidden = 16, kHeads = 4, kWidth = 4, kFeatures = 96, kWords = 320;
constexpr std::int64_t kAttentionElements = (kHeads + 2 * 2) * kWidth * kHidden + kHeads * kWidth * kHidden;
constexpr int kEmbedding = 0, kAttention = 1, kMlp = 2, kHead = 3;

/// Two KV heads.
ModelSpec small_model() {
  ModelSpec model;
  model.hidden_size = kHidden;
  model.vocab_size = kWords;
  model.layers.push_back({AttentionSpec{kHeads, 2, kWidth, false, {}}, GatedMlpSpec{kFeatures}});
  return model;
}

struct Case {
  explicit Case(std::vector<AxisSize> axes, FoldForm form = FoldForm::Auto)
      : table(small_model()), layout{.mesh = DeviceMesh(std::move(axes)), .fold_form = form} {
    for (const BlockLayout& block : table.blocks()) shares.push_back(share_of(block, layout, 0));
  }
  FoldBytes bytes(int block, const FoldWork& work) const { return fold_bytes(table, layout, shares, block, work); }
  std::vector<BlockForms> forms(const FoldWork& work) const { return fold_forms(table, layout, shares, work); }
  std::string text(const FoldWork& work) const { return fold_forms_text(table, layout, shares, work); }
  ParamTable table;
  Layout layout;
  std::vector<BlockShare> shares;
};

FoldWork work_of(std::int64_t positions, FoldPasses passes = FoldPasses::Together, bool in_place = false,
                 ElementType compute = ElementType::Float32) {
  return {positions, compute, passes, in_place};
}

constexpr BlockForms kWeights{FoldForm::Weights, FoldForm::Weights};
constexpr BlockForms kActivations{FoldForm::Activations, FoldForm::Activations};

}  // namespace

TEST_CASE("what each form moves is what the formulas of the header say") {
  const Case fold({{Axis::Fold, 2}});
  const FoldWork work = work_of(10, FoldPasses::Apart, false, ElementType::BFloat16);
  const Bytes e = 2, g = 4, activation = 10 * kHidden * e, keys_values = 2 * 2 * kWidth * 10 * e;
  const FoldBytes attention = fold.bytes(kAttention, work);
  CHECK(attention.forward.weights == kAttentionElements * e + keys_values);
  CHECK(attention.backward.weights == kAttentionElements * (e + g) + 2 * keys_values);
  CHECK(attention.forward.activations == 2 * activation);
  CHECK(attention.backward.activations == 3 * activation);
  const FoldBytes mlp = fold.bytes(kMlp, work);
  CHECK(mlp.forward.weights == 3 * kFeatures * kHidden * e);
  CHECK(mlp.backward.weights == 3 * kFeatures * kHidden * (e + g));
  const FoldBytes embedding = fold.bytes(kEmbedding, work);
  CHECK(embedding.forward.weights == kWords * kHidden * e);
  CHECK(embedding.backward.weights == kWords * kHidden * g);
  CHECK(embedding.forward.activations == activation);
  CHECK(embedding.backward.activations == activation);
  const FoldBytes head = fold.bytes(kHead, work);
  CHECK(head.forward.weights == kWords * kHidden * (2 * e + g));
  CHECK(head.forward.activations == 2 * activation + 2 * 2 * 10 * g);
  CHECK(head.backward.weights == 0);
  CHECK(head.backward.activations == 0);
}

TEST_CASE("an evaluation has no backward, and its head moves rows and tokens once") {
  const Case fold({{Axis::Fold, 3}});
  const FoldWork work = work_of(12, FoldPasses::Forward);
  for (const int block : {kEmbedding, kAttention, kMlp, kHead}) {
    CHECK(fold.bytes(block, work).backward.weights == 0);
    CHECK(fold.bytes(block, work).backward.activations == 0);
  }
  CHECK(fold.bytes(kHead, work).forward.weights == 2 * kWords * kHidden * 4);
  CHECK(fold.bytes(kHead, work).forward.activations == 2 * (12 * kHidden * 4 + 3 * 2 * 12 * 4));
}

TEST_CASE("where memory is read in place the weights cost their gradients alone") {
  const Case fold({{Axis::Fold, 2}});
  const FoldBytes mlp = fold.bytes(kMlp, work_of(10, FoldPasses::Together, /*in_place=*/true));
  CHECK(mlp.forward.weights == 0);
  CHECK(mlp.backward.weights == 3 * kFeatures * kHidden * 4);
}

TEST_CASE("rows that ranks compute with and do not store are part of what activations move") {
  const Case fold({{Axis::Fold, 8}});
  const std::int64_t foreign = foreign_elements(fold.table.blocks()[kAttention], fold.shares[kAttention], 8);
  REQUIRE(foreign > 0);
  const FoldBytes attention = fold.bytes(kAttention, work_of(16));
  CHECK(attention.forward.activations == 7 * 2 * 16 * kHidden * 4 + foreign * 4);
  CHECK(attention.backward.activations == 7 * 3 * 16 * kHidden * 4 + foreign * 8);
}

TEST_CASE("beside the tensor axis weights are 1/T, activations whole") {
  const Case fold({{Axis::Tensor, 2}, {Axis::Fold, 2}});
  const FoldBytes mlp = fold.bytes(kMlp, work_of(10));
  CHECK(mlp.forward.weights == 3 * kFeatures / 2 * kHidden * 4);
  CHECK(mlp.forward.activations == 2 * 10 * kHidden * 4);
}

TEST_CASE("few positions move to the weights, many have the weights come") {
  const Case fold({{Axis::Fold, 2}});
  for (const BlockForms& forms : fold.forms(work_of(2))) CHECK(forms == kActivations);
  for (const BlockForms& forms : fold.forms(work_of(100000))) {
    CHECK(forms == kWeights);
  }
}

TEST_CASE("where activations would leave a rank the larger share of the units, auto has weights whatever they cost") {
  const Case even({{Axis::Fold, 2}}), uneven({{Axis::Fold, 3}}), idle({{Axis::Fold, 4}});
  CHECK(even.forms(work_of(1))[kAttention] == kActivations);
  for (const Case* each : {&uneven, &idle}) {
    CHECK(each->bytes(kAttention, work_of(1)).forward.weights >
          each->bytes(kAttention, work_of(1)).forward.activations);
    CHECK(each->forms(work_of(1))[kAttention] == kWeights);
    CHECK(each->forms(work_of(1))[kMlp] == kActivations);  // 96 features divide
  }
  CHECK(Case({{Axis::Fold, 4}}, FoldForm::Activations).forms(work_of(1))[kAttention] == kActivations);
}

TEST_CASE("the choice turns where the bytes meet, and a tie goes to weights") {
  const Case fold({{Axis::Fold, 2}});
  // The MLP in float32: 2 A + 3 A against 3 f h (e + e + g).
  const std::int64_t meets = 3 * 3 * kFeatures / 5 + 1;
  CHECK(fold.forms(work_of(meets - 1))[kMlp] == kActivations);
  CHECK(fold.forms(work_of(meets))[kMlp] == kWeights);
  // Forward alone: 2 A against 3 f h e, equal at 3 f / 2.
  CHECK(fold.forms(work_of(3 * kFeatures / 2 - 1, FoldPasses::Forward))[kMlp].forward == FoldForm::Activations);
  CHECK(fold.forms(work_of(3 * kFeatures / 2, FoldPasses::Forward))[kMlp].forward == FoldForm::Weights);
}

TEST_CASE("under recompute the directions choose alone, kept values bind them together") {
  const Case fold({{Axis::Fold, 2}});
  // Forward turns at 3 f / 2 = 144 positions, backward (3 A against 2 times 3 f h) at 2 f = 192.
  const BlockForms apart = fold.forms(work_of(160, FoldPasses::Apart))[kMlp];
  CHECK(apart.forward == FoldForm::Weights);
  CHECK(apart.backward == FoldForm::Activations);
  const BlockForms together = fold.forms(work_of(160, FoldPasses::Together))[kMlp];
  CHECK(together.forward == together.backward);
}

TEST_CASE("the layout's word holds for all blocks but the embedding, which moves fewer bytes in every form") {
  for (const FoldForm form : {FoldForm::Weights, FoldForm::Activations}) {
    const Case fold({{Axis::Fold, 2}}, form);
    for (const std::int64_t positions : {2, 100000}) {
      const std::vector<BlockForms> forms = fold.forms(work_of(positions));
      for (const int block : {kAttention, kMlp, kHead}) CHECK(forms[block] == BlockForms{form, form});
      CHECK(forms[kEmbedding] == (positions == 2 ? kActivations : kWeights));
    }
  }
}

TEST_CASE("the embedding's directions choose alone: in place, its rows are read and its gradients' way is weighed") {
  const Case fold({{Axis::Fold, 2}});
  const BlockForms embedding = fold.forms(work_of(2, FoldPasses::Together, /*in_place=*/true))[kEmbedding];
  CHECK(embedding.forward == FoldForm::Weights);
  CHECK(embedding.backward == FoldForm::Activations);
}

TEST_CASE("the head has one form in both directions, and one rank has nothing to choose") {
  const Case fold({{Axis::Fold, 2}});
  for (const std::int64_t positions : {2, 50, 160, 320, 1000}) {
    const BlockForms head = fold.forms(work_of(positions, FoldPasses::Apart))[kHead];
    CHECK(head.forward == head.backward);
  }
  for (const BlockForms& forms : Case({}).forms(work_of(2))) CHECK(forms == kWeights);
}

TEST_CASE("all ranks of a layout choose alike") {
  const ParamTable table(small_model());
  Layout layout{.mesh = DeviceMesh({{Axis::Tensor, 4}, {Axis::Fold, 3}}), .misfit = Misfit::Replicate};
  for (const std::int64_t positions : {3, 30, 60, 90, 300, 900}) {
    const FoldWork work = work_of(positions, FoldPasses::Apart);
    const std::vector<BlockForms> first = fold_forms(table, layout, place(table, layout, 0).shares, work);
    for (int rank = 1; rank < layout.world_size(); ++rank) {
      CHECK(fold_forms(table, layout, place(table, layout, rank).shares, work) == first);
    }
  }
}

TEST_CASE("the thresholds are where the choice turns, and multi-head attention may never move weights") {
  const Case fold({{Axis::Fold, 2}});
  const std::string text = fold_thresholds_text(fold.table, fold.layout, fold.shares, ElementType::Float32);
  CAPTURE(text);
  CHECK(text.find(", MLP from 173,") != std::string::npos);  // 5 A against 3 f h (2 e + g): 9 f / 5 = 172.8
  // With as many KV heads as query heads, 3 K = 6 A of keys and values alone are more than 5 A.
  ModelSpec model = small_model();
  model.layers[0].mixer = AttentionSpec{4, 4, kWidth, false, {}};
  const ParamTable table(model);
  std::vector<BlockShare> shares;
  for (const BlockLayout& block : table.blocks()) shares.push_back(share_of(block, fold.layout, 0));
  const std::string never = fold_thresholds_text(table, fold.layout, shares, ElementType::Float32);
  CHECK(never.find("attention never") != std::string::npos);
}

TEST_CASE("the text says which kinds of block have which form and what that moves") {
  const Case fold({{Axis::Fold, 2}});
  const std::string text = fold.text(work_of(160, FoldPasses::Apart));
  CAPTURE(text);
  CHECK(text.find("weights forward and activations backward for MLP") != std::string::npos);
  CHECK(text.find("activations for embedding, head") != std::string::npos);
  CHECK(text.find("weights for attention") != std::string::npos);
  CHECK(text.find("sent per rank") != std::string::npos);
}
