// Predicted traffic against numbers worked out by hand. That they are what the engine books is tested in tests/dryrun.
#include "octavo/plan/traffic.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "octavo/base/error.h"
#include "octavo/layout/placement.h"

using namespace octavo;

namespace {

// One layer, untied: B = 2 blocks. In elements: embedding 1024; attention qkv 512, out 256, norm 16 + 16 of padding;
// MLP 3 * 384, norm 16 + 16; head 1024, norm 16. In all 4048.
ModelSpec model(int layers = 1, bool qk_norm = false) {
  ModelSpec spec;
  spec.model_type = qk_norm ? "qwen3" : "llama";
  spec.hidden_size = 16;
  spec.vocab_size = 64;
  for (int layer = 0; layer < layers; ++layer) {
    spec.layers.push_back({AttentionSpec{4, 2, 4, qk_norm, {}}, GatedMlpSpec{24}});
  }
  return spec;
}

struct Expected {
  std::string group;
  Purpose purpose;
  Collective kind;
  std::int64_t count;
  Bytes logical;
};

void check_rows(const std::vector<LedgerRow>& rows, const std::vector<Expected>& expected) {
  CHECK(rows.size() == expected.size());
  for (const Expected& want : expected) {
    CAPTURE(want.group);
    CAPTURE(purpose_name(want.purpose));
    CAPTURE(collective_name(want.kind));
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const LedgerRow& each) {
      return each.group == want.group && each.purpose == want.purpose && each.kind == want.kind;
    });
    REQUIRE(row != rows.end());
    CHECK(row->count == want.count);
    CHECK(row->logical == want.logical);
  }
}

std::vector<LedgerRow> step(const std::string& layout, const StepShape& shape, int rank = 0,
                            const ModelSpec& spec = model()) {
  return predict_step_traffic(ParamTable(spec), parse_layout(layout), shape, rank);
}

// Four sequences of 10 tokens, two at once.
constexpr StepShape kShape = {.batch = 4, .sequence_length = 10, .micro_batch = 2, .compute = ElementType::Float32};

}  // namespace

TEST_CASE("one rank moves nothing") {
  check_rows(step("", kShape), {});
  check_rows(step("data=1:zero1 tensor=1:scatter", kShape), {});
}

TEST_CASE("ZeRO 0 all-reduces the gradients, ZeRO 1 reduce-scatters them and gathers the weights") {
  // 4048 elements fill up to 4096, of 4 bytes; (R-1)/R = 1/2.
  check_rows(step("data=2", kShape), {{"data", Purpose::Gradients, Collective::AllReduce, 1, 16384},
                                      {"world", Purpose::Norm, Collective::AllReduce, 1, 16}});
  check_rows(step("data=2:zero1", kShape), {{"data", Purpose::Gradients, Collective::ReduceScatter, 1, 8192},
                                            {"data", Purpose::Weights, Collective::AllGather, 1, 8192},
                                            {"world", Purpose::Norm, Collective::AllReduce, 1, 16}});
  // Weights travel in bfloat16, gradients in float32; under float64 both in 8 bytes.
  StepShape shape = kShape;
  shape.compute = ElementType::BFloat16;
  check_rows(step("data=2:zero1", shape), {{"data", Purpose::Gradients, Collective::ReduceScatter, 1, 8192},
                                           {"data", Purpose::Weights, Collective::AllGather, 1, 4096},
                                           {"world", Purpose::Norm, Collective::AllReduce, 1, 16}});
  shape.compute = ElementType::Float64;
  check_rows(step("data=4", shape), {{"data", Purpose::Gradients, Collective::AllReduce, 1, 2 * 3 * 4096 * 8 / 4},
                                     {"world", Purpose::Norm, Collective::AllReduce, 1, 24}});
}

TEST_CASE("a large model's gradients travel in several buckets") {
  ModelSpec spec = model();
  spec.vocab_size = 200'000;  // embedding and head: 12.8 MB of gradients each, a bucket of its own
  // The embedding, then all the rest: 800 + 1184 + 3,200,000 + 16 elements up to a multiple of 64.
  check_rows(step("data=2", kShape, 0, spec),
             {{"data", Purpose::Gradients, Collective::AllReduce, 2, 4 * (3'200'000 + 3'202'048)},
              {"world", Purpose::Norm, Collective::AllReduce, 1, 16}});
}

TEST_CASE("the tensor axis all-reduces two activations per block, and two at the ends") {
  // Two micro-batches of 20 tokens: A = 20 * 16 * 4 = 1280 bytes, moved once each (2c = 1); 2 + 2B = 6 of them. One
  // chunk: 2 * 2 * 20 * 4 = 320 bytes, of which half is sent.
  check_rows(step("tensor=2", kShape), {{"tensor", Purpose::Activations, Collective::AllReduce, 12, 12 * 1280},
                                        {"tensor", Purpose::Loss, Collective::AllGather, 2, 2 * 160},
                                        {"world", Purpose::Norm, Collective::AllReduce, 1, 16}});
  StepShape shape = kShape;
  shape.compute = ElementType::BFloat16;  // activations halve, log-sum-exps do not
  check_rows(step("tensor=2", shape, 1), {{"tensor", Purpose::Activations, Collective::AllReduce, 12, 12 * 640},
                                          {"tensor", Purpose::Loss, Collective::AllGather, 2, 2 * 160},
                                          {"world", Purpose::Norm, Collective::AllReduce, 1, 16}});
  shape.micro_batch = 3;  // micro-batches of 30 and 10 tokens
  check_rows(step("tensor=2", shape), {{"tensor", Purpose::Activations, Collective::AllReduce, 12, 6 * (960 + 320)},
                                       {"tensor", Purpose::Loss, Collective::AllGather, 2, 240 + 80},
                                       {"world", Purpose::Norm, Collective::AllReduce, 1, 16}});
}

TEST_CASE("scatter gathers and reduce-scatters tokens filled up to a multiple of its ranks, and sums every norm") {
  StepShape shape = kShape;
  shape.sequence_length = 7;
  shape.micro_batch = 1;
  // Four micro-batches of 7 tokens, filled up to 8: A' = 8 * 16 * 4 = 512 bytes, c = 1/2. Norms: 3 * 16 elements.
  check_rows(step("tensor=2:scatter", shape),
             {{"tensor", Purpose::Activations, Collective::AllGather, 4 * 8, 4 * 8 * 256},
              {"tensor", Purpose::Activations, Collective::ReduceScatter, 4 * 6, 4 * 6 * 256},
              {"tensor", Purpose::Loss, Collective::AllGather, 4, 4 * 2 * 7 * 4},
              {"tensor", Purpose::Gradients, Collective::AllReduce, 1, 48 * 4},
              {"world", Purpose::Norm, Collective::AllReduce, 1, 16}});
}

TEST_CASE("norms inside the units are summed over the tensor axis in both forms") {
  StepShape shape = kShape;
  shape.micro_batch = 4;
  // q_norm and k_norm: 4 elements each, per layer.
  const std::vector<LedgerRow> rows = step("tensor=2", shape, 0, model(3, true));
  check_rows(rows, {{"tensor", Purpose::Activations, Collective::AllReduce, 14, 14 * 2560},
                    {"tensor", Purpose::Loss, Collective::AllGather, 1, 320},
                    {"tensor", Purpose::Gradients, Collective::AllReduce, 1, 3 * 8 * 4},
                    {"world", Purpose::Norm, Collective::AllReduce, 1, 16}});
}

TEST_CASE("KV heads that neighbours hold alike are summed over those neighbours") {
  // Two KV heads over four ranks: S = 2; k and v of a head are 2 * 4 * 16 elements. The 64 vocabulary rows and the 24
  // features divide.
  StepShape shape = kShape;
  shape.micro_batch = 4;
  check_rows(step("tensor=4:replicate", shape, 3),
             {{"tensor", Purpose::Activations, Collective::AllReduce, 6, 6 * 2560 * 3 / 2},
              {"tensor", Purpose::Loss, Collective::AllGather, 1, 3 * 2 * 40 * 4},
              {"tensor/2", Purpose::Gradients, Collective::AllReduce, 1, 128 * 4},
              {"world", Purpose::Norm, Collective::AllReduce, 1, 24}});
}

TEST_CASE("the head's loss is merged chunk by chunk of its tokens") {
  ModelSpec spec = model();
  spec.vocab_size = 131'072;  // 65,536 rows here: 256 tokens at once
  StepShape shape = kShape;
  shape.sequence_length = 300;
  shape.batch = shape.micro_batch = 1;
  const auto rows = step("tensor=2", shape, 0, spec);
  const auto loss =
      std::find_if(rows.begin(), rows.end(), [](const auto& row) { return row.purpose == Purpose::Loss; });
  REQUIRE(loss != rows.end());
  CHECK(loss->count == 2);
  CHECK(loss->logical == 300 * 2 * 4);
}

TEST_CASE("folded by weights, MLP and vocabulary go round, attention comes from its owners to all at once") {
  // Two ranks, one micro-batch of two sequences of 12 positions. Attention: two steps of one KV head; qkv 16 x 16 and
  // out 8 x 16 elements each, from one owner: half of the bytes in the mean. MLP: 12 of 24 features, three panels of 16
  // columns; head: 32 of 64 rows. Two passes each. The embedding returns the rows of 24 positions, which is less than
  // its 64.
  StepShape shape = kShape;
  shape.batch = 2;
  const Bytes attention = 2 * (256 + 128) * 4 / 2, mlp = 12 * 48 * 4, rows = 32 * 16 * 4;
  // Keys and values of a head: 2 * 4 * 24 positions. Norms: three of 16 elements.
  const Bytes positions = 24 * 16 * 4 / 2;
  for (const bool shares_memory : {true, false}) {
    shape.shares_memory = shares_memory;
    check_rows(step("fold=2:weights", shape),
               {{"fold", Purpose::Weights, Collective::Broadcast, 2 * 2 * 2, 2 * attention},
                {"fold", Purpose::Weights, Collective::Send, 2 * 3 + 2, 2 * mlp + 2 * rows},
                {"fold", Purpose::Weights, Collective::Receive, 2 * 3 + 2, 0},
                {"fold", Purpose::Gradients, Collective::Reduce, 2 * 2, attention},
                {"fold", Purpose::Gradients, Collective::Send, 3 + 1, rows + mlp},
                {"fold", Purpose::Gradients, Collective::Receive, 3 + 1, 0},
                {"fold", Purpose::Activations, Collective::ReduceScatter, 1, positions},
                {"fold", Purpose::Activations, Collective::AllGather, 1, positions},
                {"fold", Purpose::Gradients, Collective::AllReduce, 1, 48 * 4},
                {"fold", Purpose::KeysValues, Collective::AllGather, 2 * 2, 2 * 2 * 192 * 4 / 2},
                {"fold", Purpose::KeysValues, Collective::ReduceScatter, 2, 2 * 192 * 4 / 2},
                {"world", Purpose::Norm, Collective::AllReduce, 1, 16}});
  }
}

TEST_CASE("an uneven ring sends every part but the previous rank's, and what comes from its owner that owner's alone") {
  // 24 features over 5 ranks: 4 on one of them, 5 on the others. Its rows and those of others, by who sends them.
  ModelSpec spec = model();
  const ParamTable table(spec);
  const auto sent = [&](const std::string& layout, int rank, bool shares_memory) {
    StepShape shape = kShape;
    shape.batch = 2;
    shape.shares_memory = shares_memory;
    const auto rows = predict_step_traffic(table, parse_layout(layout), shape, rank);
    const auto row = std::find_if(rows.begin(), rows.end(), [](const LedgerRow& each) {
      return each.purpose == Purpose::Weights && each.kind == Collective::Send;
    });
    REQUIRE(row != rows.end());
    return row->logical;
  };
  Bytes round = 0, direct = 0;
  for (int rank = 0; rank < 5; ++rank) {
    const Placement own = place(table, parse_layout("fold=5:weights"), rank),
                    previous = place(table, parse_layout("fold=5:weights"), (rank + 4) % 5);
    const auto bytes = [&](const Placement& of) {  // both passes of MLP and head; the embedding returns its rows
      const auto rows = [&](int block) { return of.slabs[table.panel_slab(block, 0)].rows.size() * 16 * 4; };
      return 2 * 3 * rows(2) + 2 * rows(3);
    };
    const Bytes all = (2 * 3 * 24 + 2 * 64) * 16 * 4;
    CHECK(sent("fold=5:weights", rank, false) == all - bytes(previous));
    CHECK(sent("fold=5:weights:direct", rank, false) == 4 * bytes(own));
    CHECK(sent("fold=5:weights", rank, true) == 4 * bytes(own));
    round += sent("fold=5:weights", rank, false);
    direct += sent("fold=5:weights", rank, true);
  }
  CHECK(round == direct);
}

TEST_CASE("a rank without sequences takes part in what comes once per step alone") {
  StepShape shape = kShape;
  shape.batch = 1;
  const auto rows = step("data=2 tensor=2", shape, 2);
  for (const LedgerRow& row : rows) CHECK((row.group == "data" || row.group == "world"));
  CHECK(rows.size() == 2);
  CHECK(step("data=2 tensor=2", shape, 0).size() == 4);
}

TEST_CASE("an evaluation moves activations forward alone, and one sum at its end") {
  const ParamTable table(model());
  check_rows(predict_evaluation_traffic(table, parse_layout("data=2"), kShape, 0, 5),
             {{"world", Purpose::Loss, Collective::AllReduce, 1, 16}});
  check_rows(predict_evaluation_traffic(table, parse_layout("tensor=2"), kShape, 0, 5),
             {{"tensor", Purpose::Activations, Collective::AllReduce, 5 * 2 * 3, 5 * 2 * 3 * 1280},
              {"tensor", Purpose::Loss, Collective::AllGather, 10, 10 * 160},
              {"world", Purpose::Loss, Collective::AllReduce, 1, 16}});
  check_rows(predict_evaluation_traffic(table, parse_layout("tensor=2:scatter"), kShape, 0, 1),
             {{"tensor", Purpose::Activations, Collective::AllGather, 6, 6 * 640},
              {"tensor", Purpose::Activations, Collective::ReduceScatter, 6, 6 * 640},
              {"tensor", Purpose::Loss, Collective::AllGather, 2, 2 * 160},
              {"world", Purpose::Loss, Collective::AllReduce, 1, 16}});
}

TEST_CASE("a run is so many steps and so many evaluations") {
  std::vector<LedgerRow> run;
  add_rows(run, step("tensor=2", kShape), 10);
  add_rows(run, predict_evaluation_traffic(ParamTable(model()), parse_layout("tensor=2"), kShape, 0, 1), 3);
  add_rows(run, step("data=2", kShape), 0);
  check_rows(run, {{"tensor", Purpose::Activations, Collective::AllReduce, 120 + 18, (120 + 18) * 1280},
                   {"tensor", Purpose::Loss, Collective::AllGather, 20 + 6, 26 * 160},
                   {"world", Purpose::Norm, Collective::AllReduce, 10, 160},
                   {"world", Purpose::Loss, Collective::AllReduce, 3, 48}});
}

TEST_CASE("ranks outside the layout, layouts that refuse the model and impossible shapes are errors") {
  CHECK_THROWS_AS(step("data=2", kShape, 2), UsageError);
  CHECK_THROWS_AS(step("tensor=4", kShape), UsageError);
  StepShape shape = kShape;
  shape.micro_batch = 0;
  CHECK_THROWS_AS(step("data=2", shape), InternalError);
}
