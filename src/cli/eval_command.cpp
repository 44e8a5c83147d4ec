// octavo eval: loss and perplexity of a model on a file.
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/dataset/batches.h"
#include "octavo/train/model_source.h"
#include "octavo/train/trainer.h"

namespace octavo::cli {
namespace {

struct EvalArguments {
  ModelOption model;
  std::string data;
  RankOptionsText ranks;
  std::int64_t sequence_length = 256, micro_batch = 1, max_sequences = 0;
  std::uint64_t seed = 0;
  bool json_output = false;
};

int run_eval(const EvalArguments& arguments) {
  const Layout layout = arguments.ranks.parsed_layout();
  const ElementType dtype = arguments.ranks.parsed_dtype();
  const SessionOptions session_options = arguments.ranks.session(layout);
  if (arguments.max_sequences < 0)
    throw UsageError(cat("[cli] --sequences ", arguments.max_sequences, ": use 0 for all"));
  const ModelSource model(arguments.model.path, arguments.seed);
  check_trainable(model.spec());
  const TokenSource tokens(arguments.data);
  check_vocabulary(tokens, model.spec());
  // A sequence longer than the file would be padding.
  const std::int64_t length = std::min(arguments.sequence_length, std::max<std::int64_t>(1, tokens.size() - 1));
  const std::int64_t whole = ValidationBatches(tokens, length, 1).num_sequences();
  const std::int64_t wanted = arguments.max_sequences > 0 ? std::min(arguments.max_sequences, whole) : whole;
  // One step whose sequences are spread over the ranks.
  const ValidationBatches batches(tokens, length, wanted);
  const ParamTable table(model.spec());
  double loss = 0;
  run_session(session_options, [&](RankSession& session) {
    ParamStore store(table, place(table, layout, session.world.rank()), dtype, at::kCPU, /*for_training=*/false);
    store.load(model.rows());
    TrainerConfig config;
    config.micro_batch = arguments.micro_batch;
    Trainer trainer(model.spec(), layout, session.world, store, config);
    const double mean = trainer.evaluate(batches, 1);
    if (session.world.rank() == 0) loss = mean;
  });
  if (!session_options.has_rank_0()) return 0;
  const std::int64_t predicted = batches.num_labels(0);
  if (arguments.json_output) {
    std::cout << nlohmann::json{{"loss", loss},
                                {"perplexity", std::exp(loss)},
                                {"tokens", predicted},
                                {"sequences", wanted}}
                     .dump(2)
              << "\n";
  } else {
    std::cout << "loss " << fixed(loss, 5) << ", perplexity " << fixed(std::exp(loss), 3) << " over "
              << with_commas(predicted) << " tokens in " << with_commas(wanted) << " sequences of " << length << "\n";
  }
  return 0;
}

}  // namespace

void add_eval_command(CLI::App& program, Runner& run) {
  auto arguments = std::make_shared<EvalArguments>();
  CLI::App* command = program.add_subcommand("eval", "Loss and perplexity of a model on a file");
  add_model_option(*command, arguments->model);
  command->add_option("--data", arguments->data, "Text (read as bytes) or a token file (.bin, .npy)")->required();
  command->add_option("--seq-len", arguments->sequence_length, "Tokens per sequence")->capture_default_str();
  command->add_option("--micro-batch", arguments->micro_batch, "Sequences a rank takes at once")->capture_default_str();
  command->add_option("--sequences", arguments->max_sequences, "Use only so many sequences; 0: the whole file")
      ->capture_default_str();
  command->add_option("--seed", arguments->seed, "Of random weights, for a config.json")->capture_default_str();
  add_rank_options(*command, arguments->ranks);
  add_json_option(*command, arguments->json_output);
  command->footer("Example: octavo eval --model DIR --data text.txt --layout data=2");
  command->callback([arguments, &run] { run = [arguments] { return run_eval(*arguments); }; });
}

}  // namespace octavo::cli
