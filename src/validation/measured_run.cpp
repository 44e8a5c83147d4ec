#include "validation/measured_run.h"

#include <algorithm>
#include <cctype>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/validation/golden_model.h"

namespace octavo {
namespace {

using nlohmann::json;

/// A configuration that does not say enough, or says something that no layout can.
struct LeftOut {
  std::string why;
};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

class RunReader {
 public:
  RunReader(const json& input, const json& models, std::string note)
      : input_(input), models_(models), note_(std::move(note)) {}

  MeasuredRun read() const {
    check_kind();
    MeasuredRun run{model(), {}, {}, cluster(), software()};
    run.job.sequence_length = count("seq");
    run.job.batch = count("global_batch");
    run.job.compute = ElementType::BFloat16;
    run.plan.micro_batch = count("micro_batch");
    run.plan.stash = stash();
    run.plan.layout = layout();
    // Frameworks fill the vocabulary up to what tensor ranks divide.
    const std::int64_t tensor = run.plan.layout.mesh.size(Axis::Tensor);
    run.model.vocab_size = (run.model.vocab_size + tensor - 1) / tensor * tensor;
    if (run.plan.layout.world_size() > run.cluster.world_size()) {
      throw LeftOut{cat("the degrees multiply to ", run.plan.layout.world_size(), ", the run had ",
                        run.cluster.world_size(), " GPUs")};
    }
    return run;
  }

 private:
  std::string text(const char* key) const {
    return input_.contains(key) && input_[key].is_string() ? input_[key].get<std::string>() : "";
  }
  std::optional<std::int64_t> integer(const char* key) const {
    return input_.contains(key) && input_[key].is_number_integer() ? std::optional(input_[key].get<std::int64_t>())
                                                                   : std::nullopt;
  }
  std::int64_t count(const char* key) const {
    const std::optional<std::int64_t> value = integer(key);
    constexpr std::int64_t kMost = std::int64_t{1} << 32;
    if (!value || *value < 1) throw LeftOut{cat("configuration incomplete: ", key, " is unknown")};
    if (*value > kMost) throw LeftOut{cat(key, " ", *value, " is beyond ", with_commas(kMost))};
    return *value;
  }
  /// Absent: 1.
  int degree(const char* key) const {
    constexpr std::int64_t kMost = 1 << 20;
    const std::int64_t value = integer(key).value_or(1);
    if (value < 1 || value > kMost) throw LeftOut{cat(key, " ", value, " is no degree")};
    return static_cast<int>(value);
  }

  void check_kind() const {
    if (const std::string precision = text("precision"); !precision.starts_with("bf16")) {
      throw LeftOut{cat("precision ", precision.empty() ? "unknown" : precision, ": constants are for bf16")};
    }
    if (const std::string task = text("task"); !task.empty() && task != "pretrain") {
      throw LeftOut{cat("task ", task, ": not every weight is trained, or tokens are packed")};
    }
    if (integer("zero").value_or(0) == 2) throw LeftOut{"ZeRO 2 is no layout here"};
    const int fsdp = degree("fsdp");
    if (fsdp > 1 && integer("dp") && fsdp < *integer("dp")) {
      throw LeftOut{"weights cut over part of the data ranks are no layout here"};
    }
  }

  ModelSpec model() const {
    const std::string name = text("model");
    std::optional<ModelSpec> found = find_golden_model(models_, name, integer("layers"));
    if (!found) throw LeftOut{cat("configuration incomplete: the dimensions of model \"", name, "\" are unknown")};
    for (const LayerSpec& layer : found->layers) {
      if (std::holds_alternative<MoeSpec>(layer.ffn)) throw LeftOut{"not a dense model"};
    }
    return *std::move(found);
  }

  std::string software() const {
    const std::string framework = lower(text("framework"));
    const auto has = [&framework](const char* word) { return framework.find(word) != framework.npos; };
    if (has("automodel")) return "automodel";
    if (has("llm-foundry")) return "llm-foundry";
    if (has("nanotron")) return "nanotron";
    if (has("torchtitan")) return has("compile") ? "torchtitan-compiled" : "torchtitan";
    if (has("fms-fsdp")) return "fms-fsdp";
    if (has("megatron-lm")) {
      if (has("no communication overlap")) return "megatron-lm";
      throw LeftOut{cat("no constants for ", text("framework"))};
    }
    if (has("nemo") || has("megatron-core") || has("megatron-bridge")) return "megatron-core";
    throw LeftOut{framework.empty() ? std::string("configuration incomplete: no framework is named")
                                    : cat("no constants for ", text("framework"))};
  }

  Cluster cluster() const {
    const std::int64_t gpus = count("gpus");
    const std::string name = text("gpu");
    Cluster cluster;
    try {
      cluster.accelerator = find_accelerator(name);
    } catch (const UsageError&) {
      throw LeftOut{cat("accelerator \"", name, "\" is not in the catalogue")};
    }
    std::int64_t per_node = std::min<std::int64_t>(
        integer("gpus_per_node").value_or(static_cast<std::int64_t>(cluster.accelerator.fabric.ranks.value)), gpus);
    while (gpus % per_node != 0) --per_node;
    cluster.gpus_per_node = static_cast<int>(per_node);
    cluster.num_nodes = static_cast<int>(gpus / per_node);
    return cluster;
  }

  StashPolicy stash() const {
    const std::string word = text("recompute");
    if (word == "none") return {};
    if (word == "full") return {StashPolicy::Kind::Recompute, {}};
    // Selective recomputation repeats what is cheap: norms and activations.
    if (word.starts_with("selective")) return {StashPolicy::Kind::Named, {"attention", "qkv", "gate_up"}};
    throw LeftOut{word.empty() || word == "unknown" || word == "see recipe"
                      ? std::string("configuration incomplete: the recompute policy is unknown")
                      : cat("recompute \"", word, "\" is not plainly none, selective or full")};
  }

  /// Tensor ranks are neighbours, then context, then data; stages are outermost, as these frameworks lay ranks out.
  Layout layout() const {
    const int tensor = degree("tp"), pipeline = degree("pp"), context = degree("cp"), data = degree("dp");
    const int zero = static_cast<int>(integer("zero").value_or(1));
    Layout layout;
    layout.mesh =
        DeviceMesh({{Axis::Pipeline, pipeline}, {Axis::Data, data}, {Axis::Sequence, context}, {Axis::Tensor, tensor}});
    layout.zero = zero >= 3 ? ZeroStage::Weights : zero >= 1 ? ZeroStage::Optimizer : ZeroStage::None;
    const bool scatters = input_.contains("sequence_parallel") && input_["sequence_parallel"] == true;
    layout.tensor_form = scatters || text("framework").find("torchtitan") != std::string::npos ? TensorForm::Scatter
                                                                                               : TensorForm::AllReduce;
    layout.misfit = Misfit::Replicate;
    const bool swaps = lower(note_ + text("sequence_parallel")).find("all-to-all") != std::string::npos ||
                       lower(text("sequence_parallel")).find("ulysses") != std::string::npos;
    layout.sequence_form = swaps ? SequenceForm::Ulysses : SequenceForm::Ring;
    if (const int chunks = degree("vp"); chunks > 1 && pipeline > 1) {
      layout.virtual_stages = chunks;
      layout.pipeline_form = PipelineForm::Interleaved;
    }
    return layout;
  }

  const json& input_;
  const json& models_;
  std::string note_;
};

}  // namespace

std::variant<MeasuredRun, std::string> measured_run(const json& input, const json& models, const std::string& note) {
  try {
    return RunReader(input, models, note).read();
  } catch (const LeftOut& reason) {
    return reason.why;
  } catch (const UsageError& error) {
    return std::string(error.what());
  }
}

}  // namespace octavo
