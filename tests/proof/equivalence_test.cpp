#include "octavo/proof/equivalence.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <set>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/dataset/random_batches.h"
#include "octavo/layout/fold_choice.h"
#include "octavo/layout/placement.h"
#include "proof/small_models.h"

using namespace octavo;
using octavo::testing::config_text;
using octavo::testing::ConfigFile;

namespace {

TrainingRunOptions options_for(const std::string& layout, ElementType compute, const std::string& stash) {
  TrainingRunOptions options;
  options.layout = parse_layout(layout);
  options.compute = compute;
  options.trainer.stash = parse_stash_policy(stash);
  options.trainer.schedule.peak = 1e-3;
  return options;
}

void check_proof(const std::string& config, const std::string& layout, ElementType compute, const std::string& stash,
                 std::int64_t batch, std::int64_t micro_batch, std::int64_t length = 13) {
  CAPTURE(config);
  CAPTURE(layout);
  CAPTURE(stash);
  CAPTURE(batch);
  const ConfigFile file(config);
  const ModelSource model(file.path(), 11);
  const RandomBatches batches({model.spec().vocab_size, length, batch, 5});
  TrainingRunOptions options = options_for(layout, compute, stash);
  options.trainer.micro_batch = micro_batch;
  TrainingRun run;
  const ProofReport report = prove_equivalence(model, batches, options, &run);
  INFO(report.to_string());
  CHECK(report.passed());
  const int degree = options.layout.mesh.size(Axis::Data);
  const int idle = std::max<int>(0, degree - static_cast<int>(batch)) * options.layout.world_size() / degree;
  CHECK(static_cast<int>(run.idle_ranks.size()) == idle);
}

/// "fold=2#" with the fold's options.
std::string in_form(std::string layout, const std::string& form) {
  return layout.replace(layout.find('#'), 1, form);
}

}  // namespace

TEST_CASE("N data-parallel ranks compute what one computes: loss, gradients, norm, weights") {
  for (const char* zero : {"", ":zero1"}) {
    for (const int degree : {2, 3, 4}) {
      for (const std::int64_t batch : {1, 3}) {
        check_proof(config_text("llama", 6, 2, false), cat("data=", degree, zero), ElementType::Float64, "keep", batch,
                    1);
        check_proof(config_text("qwen3", 4, 1, true), cat("data=", degree, zero), ElementType::Float32, "keep", batch,
                    2);
      }
    }
  }
}

TEST_CASE("N tensor-parallel ranks compute what one computes, in both forms") {
  for (const char* form : {"", ":scatter"}) {
    for (const char* stash : {"keep", "recompute"}) {
      for (const int degree : {2, 4, 8}) {
        const std::string layout = cat("tensor=", degree, form);
        // 13 tokens a sequence: they do not divide among the ranks.
        check_proof(config_text("llama", 8, 8, false, 64), layout, ElementType::Float64, stash, 3, 2);
        check_proof(config_text("qwen3", 16, 8, true, 64), layout, ElementType::Float64, stash, 1, 1);
      }
      check_proof(config_text("llama", 6, 3, false, 63, 39), cat("tensor=3", form), ElementType::Float32, stash, 3, 1);
      check_proof(config_text("qwen3", 12, 6, false, 66, 42), cat("tensor=6", form), ElementType::Float64, stash, 2, 2);
    }
  }
}

TEST_CASE("what tensor parallelism does not divide is replicated or padded, and the numbers stay the same") {
  for (const char* misfit : {":replicate", ":pad", ":scatter:replicate", ":scatter:pad"}) {
    for (const int degree : {2, 3, 4, 6, 8}) {
      const std::string layout = cat("tensor=", degree, misfit);
      // Two KV heads of three query heads; an odd vocabulary; features that most degrees do not divide.
      check_proof(config_text("llama", 6, 2, false), layout, ElementType::Float64, "keep", 3, 2);
      check_proof(config_text("qwen3", 4, 2, true, 61, 37), layout, ElementType::Float64, "recompute", 2, 1);
    }
  }
}

TEST_CASE("tensor parallelism composes with data parallelism and ZeRO 1") {
  for (const char* layout : {"data=2 tensor=2", "tensor=2:scatter data=2:zero1", "data=2:zero1 tensor=4:replicate",
                             "data=3:zero1 tensor=2:scatter:pad", "tensor=4:replicate:scatter data=2"}) {
    check_proof(config_text("llama", 8, 2, false, 64), layout, ElementType::Float64, "keep", 3, 1);
    check_proof(config_text("qwen3", 8, 4, true, 64), layout, ElementType::Float64, "recompute", 2, 2);
  }
}

TEST_CASE("N folded ranks compute what one computes, at any degree, by weights") {
  for (const char* order : {"", ":contiguous"}) {
    for (const char* stash : {"keep", "recompute", "attention", "qkv,gate_up"}) {
      for (const int degree : {2, 3, 4, 5, 8}) {
        const std::string layout = cat("fold=", degree, ":weights", order);
        // Two KV heads, an odd vocabulary, features that no degree divides, and lengths that leave chunks without
        // tokens.
        check_proof(config_text("llama", 6, 2, false, 61, 37), layout, ElementType::Float64, stash, 3, 2);
        check_proof(config_text("qwen3", 4, 1, true), layout, ElementType::Float64, stash, 1, 1);
      }
    }
  }
  check_proof(config_text("llama", 4, 4, false), "fold=4:weights", ElementType::Float32, "keep", 2, 2, 32);
  check_proof(config_text("llama", 6, 2, false, 61, 37), "fold=5:weights:direct", ElementType::Float64, "keep", 3, 2);
}

TEST_CASE("shards of ZeRO 1 hold the same vectors on all folded ranks, though these store parts of other lengths") {
  for (const int features : {23, 37, 50}) {
    for (const char* layout : {"data=2:zero1 fold=2", "data=3:zero1 fold=2", "data=2:zero1 fold=4"}) {
      check_proof(config_text("qwen3", 6, 3, false, 61, features), layout, ElementType::Float64, "keep", 4, 1);
    }
  }
}

TEST_CASE("KV heads of a rank's part may be taken in buckets, down to one head each") {
  for (const char* stash : {"keep", "recompute", "attention"}) {
    check_proof(config_text("llama", 12, 6, false), "fold=2:weights:buckets-2", ElementType::Float64, stash, 2, 1);
    check_proof(config_text("qwen3", 8, 8, false), "fold=3:weights:buckets-9", ElementType::Float64, stash, 2, 1);
  }
}

TEST_CASE("folded blocks may have as many units as ranks, one more, and fewer") {
  for (const int units : {3, 4, 5}) {
    for (const char* stash : {"keep", "recompute"}) {
      check_proof(config_text("llama", 4, 2, false, units, units), "fold=4:weights", ElementType::Float64, stash, 2, 1);
      check_proof(config_text("qwen3", 4, 2, true, 61, units), "fold=4:weights", ElementType::Float64, stash, 2, 1);
    }
  }
}

TEST_CASE("N folded ranks compute what one computes, at any degree, by activations and in the form that moves less") {
  for (const char* form : {":activations", ":activations:contiguous", ""}) {
    for (const char* stash : {"keep", "recompute", "attention", "qkv,gate_up"}) {
      for (const int degree : {2, 3, 4, 5, 8}) {
        // Two KV heads and one: most ranks have none. At 8 ranks an embedding of 7 rows leaves one without.
        const std::string layout = cat("fold=", degree, form);
        check_proof(config_text("llama", 6, 2, false, 61, 37), layout, ElementType::Float64, stash, 3, 2);
        check_proof(config_text("qwen3", 4, 1, true, 7, 5), layout, ElementType::Float64, stash, 1, 1);
      }
    }
    check_proof(config_text("llama", 4, 4, false), cat("fold=4", form), ElementType::Float32, "keep", 2, 2, 32);
    check_proof(config_text("qwen3", 8, 8, true), cat("fold=8", form), ElementType::Float32, "recompute", 2, 2, 32);
  }
}

TEST_CASE("folded ranks that wait for everything at once compute the same") {
  const ConfigFile file(config_text("llama", 6, 2, false));
  const ModelSource model(file.path(), 11);
  const RandomBatches batches({model.spec().vocab_size, 13, 3, 5});
  for (const char* layout : {"fold=3:weights", "fold=8:activations", "fold=5"}) {
    for (const char* stash : {"keep", "recompute"}) {
      TrainingRunOptions options = options_for(layout, ElementType::Float64, stash);
      options.trainer.micro_batch = 2;
      options.trainer.overlap = false;
      const ProofReport report = prove_equivalence(model, batches, options);
      INFO(report.to_string());
      CHECK(report.passed());
    }
  }
}

TEST_CASE("blocks choose other forms as micro-batches grow, and the numbers stay the same") {
  const std::string config = config_text("llama", 6, 2, false);
  const ConfigFile file(config);
  const ParamTable table(ModelSource(file.path(), 0).spec());
  const Layout layout = parse_layout("fold=2");
  const std::vector<BlockShare> shares = place(table, layout, 0).shares;
  std::set<std::vector<FoldForm>> seen;
  // 3 sequences, two at once: the micro-batches of a step may differ, and forward and backward.
  for (const std::int64_t length : {4, 16, 28, 40, 80}) {
    for (const FoldPasses passes : {FoldPasses::Together, FoldPasses::Apart}) {
      std::vector<FoldForm> chosen;
      for (const std::int64_t sequences : {2, 1}) {
        const FoldWork work{sequences * length, ElementType::Float64, passes, /*reads_in_place=*/true};
        for (const BlockForms& forms : fold_forms(table, layout, shares, work)) {
          chosen.insert(chosen.end(), {forms.forward, forms.backward});
        }
      }
      seen.insert(chosen);
      check_proof(config, "fold=2", ElementType::Float64, passes == FoldPasses::Apart ? "recompute" : "keep", 3, 2,
                  length);
    }
  }
  CHECK(seen.size() >= 4);
}

TEST_CASE("folding composes with data, ZeRO 1 and tensor parallelism") {
  for (const char* form : {":weights", ":activations", ""}) {
    for (const char* layout : {"data=2 fold=2#", "data=2:zero1 fold=3#", "fold=2# tensor=2",
                               "tensor=4:replicate:scatter fold=2#", "fold=3# tensor=2:pad data=2:zero1"}) {
      check_proof(config_text("llama", 4, 2, false, 62), in_form(layout, form), ElementType::Float64, "keep", 3, 1);
      check_proof(config_text("qwen3", 8, 4, true, 64), in_form(layout, form), ElementType::Float64, "recompute", 2, 2);
    }
  }
}

TEST_CASE("a sequence of one token goes through every form") {
  for (const char* layout :
       {"tensor=4", "tensor=4:scatter", "data=2 tensor=2:scatter", "fold=3:weights", "fold=3:activations", "fold=3"}) {
    check_proof(config_text("llama", 4, 4, false, 64), layout, ElementType::Float64, "keep", 1, 1, 1);
  }
}

TEST_CASE("a degree that does not divide is refused before anything runs") {
  const ConfigFile file(config_text("llama", 6, 2, false));
  const ModelSource model(file.path(), 3);
  const RandomBatches batches({model.spec().vocab_size, 19, 4, 5});
  CHECK_THROWS_WITH_AS(run_training(model, batches, options_for("tensor=2", ElementType::Float64, "keep"), false),
                       doctest::Contains("61 vocabulary rows over tensor=2"), UsageError);
}

TEST_CASE("every stash policy gives the same numbers") {
  for (const char* stash : {"keep", "recompute", "attention", "qkv", "gate_up", "attention,qkv,gate_up"}) {
    check_proof(config_text("llama", 4, 4, true), "data=2:zero1", ElementType::Float64, stash, 3, 1);
    check_proof(config_text("qwen3", 6, 3, false), "data=2", ElementType::Float64, stash, 3, 2);
  }
}

TEST_CASE("the stash policy does not change a bit of what one rank computes beyond rounding") {
  const ConfigFile file(config_text("qwen3", 6, 3, false));
  const ModelSource model(file.path(), 3);
  const RandomBatches batches({model.spec().vocab_size, 17, 2, 5});
  const TrainingRun kept = run_training(model, batches, options_for("", ElementType::Float64, "keep"), false);
  const Tolerances limits = Tolerances::of(ElementType::Float64, 1e-3);
  for (const char* stash : {"recompute", "attention", "qkv", "gate_up"}) {
    CAPTURE(stash);
    const ProofReport report =
        compare_runs(run_training(model, batches, options_for("", ElementType::Float64, stash), false), kept, limits);
    INFO(report.to_string());
    CHECK(report.passed());
  }
}

TEST_CASE("sequences of one token are legal") {
  check_proof(config_text("llama", 4, 2, false), "data=2", ElementType::Float64, "recompute", 3, 1, 1);
}

TEST_CASE("the same layout twice is bitwise the same run") {
  const ConfigFile file(config_text("llama", 6, 2, false));
  const ModelSource model(file.path(), 3);
  const RandomBatches batches({model.spec().vocab_size, 19, 4, 5});
  for (const ElementType compute : {ElementType::Float32, ElementType::BFloat16}) {
    for (const char* layout :
         {"data=3", "data=4:zero1", "fold=3:activations", "fold=8", "fold=4:weights", "data=2:zero1 fold=3:weights"}) {
      const TrainingRun first = run_training(model, batches, options_for(layout, compute, "keep"), false);
      const TrainingRun second = run_training(model, batches, options_for(layout, compute, "keep"), false);
      CHECK(first.losses == second.losses);
      CHECK(first.gradients.values == second.gradients.values);
      CHECK(first.weights.values == second.weights.values);
      CHECK(first.replicas_agree);
      CHECK(second.replicas_agree);
    }
  }
}

TEST_CASE("the full matrix of layouts, batches, stash policies and models" *
          doctest::skip(std::getenv("OCTAVO_PROOF") == nullptr)) {
  for (const ElementType compute : {ElementType::Float64, ElementType::Float32}) {
    for (const char* zero : {"", ":zero1"}) {
      for (const int degree : {2, 3, 4, 5, 8}) {
        for (const std::int64_t batch : {1, 3, 8}) {
          for (const char* stash : {"keep", "recompute", "attention", "qkv,gate_up"}) {
            const std::string layout = cat("data=", degree, zero);
            check_proof(config_text("llama", 6, 2, false), layout, compute, stash, batch, 1);
            check_proof(config_text("llama", 4, 4, true), layout, compute, stash, batch, 2, 33);
            check_proof(config_text("qwen3", 4, 1, true), layout, compute, stash, batch, 8, 5);
            check_proof(config_text("qwen3", 6, 3, false), layout, compute, stash, batch, 3);
          }
        }
      }
    }
  }
}

TEST_CASE("the full matrix of tensor and folded layouts" * doctest::skip(std::getenv("OCTAVO_PROOF") == nullptr)) {
  for (const char* data : {"", "data=2 ", "data=3:zero1 "}) {
    for (const char* stash : {"keep", "recompute", "attention", "qkv,gate_up"}) {
      for (const int degree : {2, 3, 4, 5, 6, 8}) {
        for (const char* form :
             {"tensor=#:replicate", "tensor=#:pad", "tensor=#:scatter:replicate", "tensor=#:scatter:pad",
              "fold=#:weights", "fold=#:weights:contiguous", "fold=#:activations", "fold=#"}) {
          std::string layout = std::string(data) + form;
          layout.replace(layout.find('#'), 1, cat(degree));
          check_proof(config_text("llama", 6, 2, false), layout, ElementType::Float64, stash, 3, 2);
          check_proof(config_text("qwen3", 4, 1, true, 61, 37), layout, ElementType::Float64, stash, 2, 1, 7);
        }
      }
    }
  }
}

TEST_CASE("a proof in bfloat16 is refused") {
  CHECK_THROWS_AS(Tolerances::of(ElementType::BFloat16, 1e-3), UsageError);
}

TEST_CASE("a wrong gradient is caught") {
  const ConfigFile file(config_text("llama", 6, 2, false));
  const ModelSource model(file.path(), 3);
  const RandomBatches batches({model.spec().vocab_size, 19, 4, 5});
  const TrainingRun right = run_training(model, batches, options_for("", ElementType::Float64, "keep"), false);
  TrainingRun wrong = right;
  wrong.gradients.values[3][0] += 1e-6;
  CHECK_FALSE(compare_runs(wrong, right, Tolerances::of(ElementType::Float64, 1e-3)).passed());
  wrong = right;
  wrong.weights.values.back()[0] += 1e-2;
  CHECK_FALSE(compare_runs(wrong, right, Tolerances::of(ElementType::Float64, 1e-3)).passed());
}
