#include "validation/golden_run.h"

#include <algorithm>
#include <cctype>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/validation/golden_model.h"

namespace octavo {
namespace {

using nlohmann::json;

/// A configuration that does not say enough, or says something that no rule covers.
struct Unclear {
  std::string why;
};

class Input {
 public:
  Input(const json& input, const json& models) : input_(input), models_(models) {}

  GoldenRun read() {
    GoldenRun result{nullptr, {}};
    FrameworkRun& run = result.run;
    run.model = model();
    result.rules = &rules();
    if (has("strategy")) {
      cut_by_strategy(run);
    } else if (has("technique")) {
      cut_by_technique(run);
    } else {
      cut_by_degrees(run);
    }
    return result;
  }

 private:
  bool has(const char* key) const { return input_.contains(key) && !input_[key].is_null(); }
  std::optional<std::int64_t> integer(const char* key) const {
    return has(key) && input_[key].is_number_integer() ? std::optional(input_[key].get<std::int64_t>()) : std::nullopt;
  }
  std::string text(const char* key) const {
    return has(key) && input_[key].is_string() ? input_[key].get<std::string>() : "";
  }
  bool flag(const char* key) const { return has(key) && input_[key].is_boolean() && input_[key].get<bool>(); }
  /// A number of ranks or parts; unknown counts as 1.
  int degree(const char* key) const {
    return has(key) ? static_cast<int>(positive(key, "degree", std::int64_t{1} << 20)) : 1;
  }
  std::int64_t positive(const char* key, const char* what, std::int64_t most = std::int64_t{1} << 40) const {
    const std::optional<std::int64_t> value = integer(key);
    if (!value) throw Unclear{cat("configuration incomplete: the ", what, " is unknown")};
    if (*value < 1 || *value > most) throw Unclear{cat("configuration not usable: ", key, " is ", *value)};
    return *value;
  }

  ModelSpec model() const {
    if (!has("model")) throw Unclear{"configuration incomplete: no model is named"};
    const std::string name = text("model");
    if (std::optional<ModelSpec> known = find_golden_model(models_, name, integer("layers"))) return *known;
    if (std::optional<ModelSpec> described = model_in_words(name)) return *described;
    throw Unclear{cat("configuration incomplete: the dimensions of model \"", name, "\" are unknown")};
  }

  /// The number that stands behind (or before) a word: "hidden 4096", "32 layers"; 0 without one.
  static std::int64_t number_by(const std::vector<std::string>& words, const std::string& word, bool before) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::size_t at = before ? i - 1 : i + 1;
      if (words[i] != word || at >= words.size()) continue;
      if (!std::all_of(words[at].begin(), words[at].end(), [](unsigned char c) { return std::isdigit(c) != 0; })) break;
      return std::stoll(words[at]);
    }
    return 0;
  }

  /// "dense, hidden 4096, 32 layers, 32 heads, ffn 16384 x3"; a vocabulary that is not given counts as none.
  static std::optional<ModelSpec> model_in_words(const std::string& text) {
    std::string plain = text;
    std::replace(plain.begin(), plain.end(), ',', ' ');
    std::vector<std::string> words;
    for (const std::string& word : split(plain, ' ')) {
      if (!word.empty() && word.size() < 12) words.push_back(word);
    }
    const std::int64_t hidden = number_by(words, "hidden", false), layers = number_by(words, "layers", true);
    const std::int64_t heads = number_by(words, "heads", true), features = number_by(words, "ffn", false);
    if (hidden < 1 || layers < 1 || heads < 1 || features < 1) return std::nullopt;
    const std::int64_t groups = number_by(words, "kv", false);
    ModelSpec model;
    model.hidden_size = hidden;
    model.vocab_size = number_by(words, "vocab", false);
    AttentionSpec attention;
    attention.num_heads = heads;
    attention.num_kv_heads = groups > 0 ? groups : heads;
    attention.head_dim = hidden / heads;
    LayerSpec layer{attention, GatedMlpSpec{features}};
    model.layers.assign(layers, layer);
    return model;
  }

  const MemoryRules& rules() const {
    const std::string framework = text("framework");
    if (framework.starts_with("Megatron")) return megatron_rules();
    if (framework.starts_with("torchtitan")) return torchtitan_rules();
    if (framework.starts_with("nanotron")) return nanotron_rules();
    if (framework.starts_with("DeepSpeed")) return deepspeed_rules();
    if (!framework.empty()) throw Unclear{cat("no rules for framework \"", framework, "\"")};
    if (has("strategy")) return folding_rules();
    if (has("technique")) return alst_rules();
    throw Unclear{"configuration incomplete: no framework is named"};
  }

  RunRecompute recompute() const {
    const std::string word = text("recompute");
    if (word == "none") return RunRecompute::None;
    if (word == "selective") return RunRecompute::Selective;
    if (word == "full") return RunRecompute::Full;
    throw Unclear{word.empty() ? "configuration incomplete: the recompute policy is unknown"
                               : cat("configuration incomplete: recompute \"", word,
                                     "\" is not plainly none, selective or full")};
  }

  void cut_by_degrees(FrameworkRun& run) const {
    run.tensor = degree("tp");
    run.pipeline = degree("pp");
    run.context = degree("cp");
    run.expert = degree("ep");
    run.virtual_stages = degree("vp");
    run.recompute = recompute();
    run.zero = static_cast<int>(integer("zero").value_or(0));
    run.cuts_tokens_between_blocks = flag("sequence_parallel");
    run.offloads_optimizer = flag("optimizer_offload");
    run.offloads_parameters = flag("parameter_offload");
    if (run.offloads_parameters || flag("zero_plus_plus")) {
      throw Unclear{"ZeRO++ and weights kept on the host are not covered by any rule"};
    }
    const std::int64_t model_ranks = std::int64_t{run.tensor} * run.pipeline * run.context;
    if (integer("dp") || integer("fsdp")) {
      run.data = degree(has("fsdp") ? "fsdp" : "dp");
    } else if (integer("gpus")) {
      run.data = static_cast<int>(std::max<std::int64_t>(1, degree("gpus") / model_ranks));
    } else {
      throw Unclear{"configuration incomplete: the number of GPUs is unknown"};
    }
    if (!integer("zero") && run.data * run.context > 1) {
      throw Unclear{"configuration incomplete: whether data-parallel ranks share out their state is unknown"};
    }
    run.sequence_length = positive("seq", "sequence length");
    run.micro_batch = positive(has("micro_batch") ? "micro_batch" : "local_batch", "micro-batch");
    // In words where several give the same peak: then there are enough for the pipeline.
    run.micro_batches = integer("micro_batches") ? positive("micro_batches", "number of micro-batches") : run.pipeline;
  }

  /// One step of long-sequence training on a node, each technique on top of the ones before.
  void cut_by_technique(FrameworkRun& run) const {
    const std::string technique = text("technique");
    positive("gpus", "number of GPUs");
    const auto says = [&](const char* word) { return technique.find(word) != std::string::npos; };
    const bool all = says("all parts"), offloads = all || says("offload"), tiles = all || says("tiled MLP");
    run.zero = static_cast<int>(integer("zero").value_or(0));
    run.offloads_optimizer = flag("optimizer_offload");
    run.recompute = RunRecompute::Full;
    run.offloads_checkpoints = offloads;
    run.tiles_ffn = tiles && !says("without tiled MLP");
    run.tiles_loss = offloads || tiles || says("Ulysses") || says("tiled logits");
    run.data = degree("gpus");
    // What comes on top of Ulysses has it.
    if (technique.starts_with("+") || all) {
      run.context = degree("gpus");
      run.data = 1;
    }
    if (has("seq")) run.sequence_length = positive("seq", "sequence length");
  }

  void cut_by_strategy(FrameworkRun& run) const {
    run.sequence_length = positive("tokens", "number of tokens");
    run.recompute = RunRecompute::Full;
    const int ranks = degree("D");
    const std::string strategy = text("strategy");
    if (strategy == "tsp") {
      run.fold = ranks;
    } else if (strategy == "tp") {
      run.tensor = ranks;
    } else if (strategy == "sp") {
      run.context = ranks;
    } else if (strategy == "tp_sp_a" && ranks >= 2) {  // the layouts of D ranks, as the state of their bars shows
      run.tensor = ranks / 2;
      run.context = 2;
    } else if (strategy == "tp_sp_b" && ranks >= 4) {
      run.tensor = ranks / 4;
      run.context = 4;
    } else if (strategy != "dp") {
      throw Unclear{cat("strategy \"", strategy, "\" is not one of tsp, tp, sp, dp, tp_sp_a, tp_sp_b")};
    }
  }

  const json& input_;
  const json& models_;
};

}  // namespace

std::variant<GoldenRun, std::string> golden_run(const json& input, const json& models) {
  try {
    return Input(input, models).read();
  } catch (const Unclear& unclear) {
    return unclear.why;
  } catch (const UsageError& error) {
    return cat("configuration not usable: ", error.what());
  }
}

}  // namespace octavo
