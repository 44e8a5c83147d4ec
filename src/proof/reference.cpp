#include "octavo/proof/reference.h"

#include <ATen/ATen.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/checkpoint/safetensors.h"

namespace octavo {
namespace {

// How far transformers itself is from these numbers with two threads, another attention kernel or float64, with room.
constexpr double kHiddenLimit = 1e-4, kLossLimit = 1e-5, kGradientLimit = 1e-4, kAdamLossLimit = 5e-5;
constexpr double kWeightClose = 1e-5, kWeightFar = 2e-3;

/// reference.safetensors of the folder, or the file that its reference.json names under "reference".
std::filesystem::path reference_path(const std::filesystem::path& folder) {
  const std::filesystem::path description = folder / "reference.json", file = folder / "reference.safetensors";
  if (std::filesystem::exists(file) || !std::filesystem::exists(description)) return file;
  std::ifstream in(description);
  const nlohmann::json json = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("reference") || !json["reference"].is_string()) {
    throw UsageError(cat("[proof] ", description.string(), " names no file under \"reference\""));
  }
  return folder / json["reference"].get<std::string>();
}

SafetensorsFile open_reference(const std::filesystem::path& folder) {
  const std::filesystem::path file = reference_path(folder);
  if (!std::filesystem::exists(file)) {
    throw UsageError(cat("[proof] there is no ", file.string(), "; give a folder with stored numbers"));
  }
  return SafetensorsFile(file);
}

const StoredTensor& find(const SafetensorsFile& file, const std::string& name) {
  if (const StoredTensor* tensor = file.find(name)) return *tensor;
  throw UsageError(cat("[proof] ", file.path().string(), " has no tensor ", name));
}

std::vector<double> read_all(const SafetensorsFile& file, const std::string& name, std::size_t num_elements) {
  std::vector<double> values(find(file, name).num_elements());
  if (values.size() != num_elements) {
    throw UsageError(cat("[proof] ", file.path().string(), ": ", name, " has ", values.size(),
                         " elements, the model gives ", num_elements,
                         "; the stored numbers belong to another model or batch"));
  }
  file.read_as_double(name, 0, values);
  return values;
}

std::vector<std::int64_t> read_ids(const SafetensorsFile& file, const std::string& name) {
  const StoredTensor& tensor = find(file, name);
  if (tensor.type != StorageType::I64 || tensor.shape.size() != 2) {
    throw UsageError(cat("[proof] ", file.path().string(), ": ", name, " must be I64 [B, T]"));
  }
  std::vector<std::int64_t> ids(tensor.num_elements());
  std::memcpy(ids.data(), file.bytes(tensor).data(), ids.size() * sizeof(std::int64_t));
  return ids;
}

std::vector<double> to_vector(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kDouble).contiguous().view({-1});
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

/// Hidden states and logits by the names of the reference file. Every rank computes them; they are the same.
NamedTensors forward_in(RankSession& session, const ModelSource& model, const ReferenceBatch& batch,
                        const TrainingRunOptions& options) {
  const ParamTable table(model.spec());
  ParamStore store(table, place(table, options.layout, session.world.rank()), options.compute, at::kCPU, false);
  store.load(model.rows());
  RankGroups groups(session.world, options.layout, store.placement());
  Decoder decoder(model.spec(), store, groups, {options.trainer.stash, options.trainer.overlap});
  TokenBatch tokens;
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < batch.batch_size(); ++i) {
    const Sequence sequence = batch.sequence(0, i);
    ids.insert(ids.end(), sequence.tokens.begin(), sequence.tokens.end());
    tokens.lengths.push_back(batch.sequence_length());
  }
  tokens.ids_N = at::empty({static_cast<std::int64_t>(ids.size())}, at::kLong);
  std::copy(ids.begin(), ids.end(), tokens.ids_N.data_ptr<std::int64_t>());
  NamedTensors own;
  const auto add = [&](const std::string& name, const at::Tensor& value) {
    own.names.push_back(name);
    own.values.push_back(to_vector(value));
  };
  at::Tensor before;
  const at::Tensor hidden = decoder.hidden(tokens, [&](int block, const at::Tensor& x) {
    if (block == 0) add("hidden.embed", x);
    if (block % 2 == 1) add(cat("mixer.", block / 2), x - before);
    if (block > 0 && block % 2 == 0) add(cat("hidden.", block / 2 - 1), x);
    before = x;
  });
  add("hidden.final", hidden);
  add("logits", decoder.logits(hidden));
  return own;
}

NamedTensors read_like(const SafetensorsFile& file, const NamedTensors& like, const std::string& prefix) {
  NamedTensors expected;
  expected.names = like.names;
  for (std::size_t i = 0; i < like.names.size(); ++i) {
    expected.values.push_back(read_all(file, prefix + like.names[i], like.values[i].size()));
  }
  return expected;
}

}  // namespace

ReferenceBatch ReferenceBatch::read(const std::filesystem::path& folder) {
  const SafetensorsFile file = open_reference(folder);
  const std::vector<std::int64_t> ids = read_ids(file, "input_ids"), labels = read_ids(file, "labels");
  const std::vector<std::int64_t>& shape = find(file, "input_ids").shape;
  if (shape != find(file, "labels").shape) {
    throw UsageError(cat("[proof] ", file.path().string(), ": input_ids and labels have different shapes"));
  }
  const std::int64_t count = shape[0], length = shape[1];
  ReferenceBatch batch(length, count);
  for (std::int64_t b = 0; b < count; ++b) {
    Sequence sequence;
    for (std::int64_t t = 0; t < length; ++t) {
      sequence.tokens.push_back(ids[b * length + t]);
      sequence.labels.push_back(t + 1 < length ? labels[b * length + t + 1] : kIgnoredLabel);
    }
    batch.sequences_.push_back(std::move(sequence));
  }
  return batch;
}

Sequence ReferenceBatch::sequence(std::int64_t step, std::int64_t index) const {
  check_place(step, index);
  return sequences_[index];
}

std::int64_t ReferenceBatch::num_labels(std::int64_t) const {
  std::int64_t count = 0;
  for (const Sequence& sequence : sequences_) {
    for (const std::int64_t label : sequence.labels) count += label >= 0;
  }
  return count;
}

ProofReport compare_with_reference(const std::filesystem::path& folder, const TrainingRunOptions& options) {
  if (options.compute == ElementType::BFloat16) {
    throw UsageError("[proof] the stored numbers are float32; compute in fp32 or fp64");
  }
  const SafetensorsFile file = open_reference(folder);
  const ReferenceBatch batch = ReferenceBatch::read(folder);
  const ModelSource model(folder, 0);
  ProofReport report;

  TrainingRunOptions training = options;
  training.num_steps = 3;
  training.trainer.adamw = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};
  training.trainer.schedule = {.peak = 1e-3, .floor = 1e-3, .warmup_steps = 0, .total_steps = 0};
  training.trainer.clip_norm = 1.0;
  NamedTensors forward;
  TrainingRun run;
  SessionOptions session_options = options.session;
  session_options.num_ranks = options.layout.world_size();
  run_session(session_options, [&](RankSession& session) {
    NamedTensors values = forward_in(session, model, batch, options);
    TrainingRun trained = train_in(session, model, batch, training, /*same_batch=*/true);
    if (session.world.rank() != 0) return;
    forward = std::move(values);
    run = std::move(trained);
  });
  if (!options.session.has_rank_0()) return report;
  report.rows.push_back(
      compare_tensors("hidden states and logits", forward, read_like(file, forward, ""), kHiddenLimit, false));
  report.rows.push_back(compare_scalars("loss", {run.losses.front()}, read_all(file, "loss", 1), kLossLimit, false));
  report.rows.push_back(
      compare_tensors("gradients", run.gradients, read_like(file, run.gradients, "grad."), kGradientLimit, true));
  report.rows.push_back(compare_scalars("gradient norms", run.gradient_norms,
                                        read_all(file, "adamw.grad_norms", run.gradient_norms.size()), kGradientLimit,
                                        true));
  report.rows.push_back(compare_scalars("AdamW losses", run.losses, read_all(file, "adamw.losses", run.losses.size()),
                                        kAdamLossLimit, false));
  for (ProofRow& row : compare_adam_weights("AdamW weights", run.weights, read_like(file, run.weights, "adamw."),
                                            kWeightClose, kWeightFar)) {
    report.rows.push_back(std::move(row));
  }
  return report;
}

}  // namespace octavo
