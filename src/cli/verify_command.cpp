// octavo verify: N ranks equal one, or the stored numbers of a reference.
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/dataset/batches.h"
#include "octavo/dataset/random_batches.h"
#include "octavo/proof/equivalence.h"
#include "octavo/proof/reference.h"

namespace octavo::cli {
namespace {

struct VerifyArguments {
  ModelOption model;
  std::string reference, data, stash = "keep";
  RankOptionsText ranks;
  std::int64_t batch = 0, sequence_length = 64, micro_batch = 1, steps = 3;
  double learning_rate = 1e-3;
  std::uint64_t seed = 0;
  bool json_output = false;
};

int print(const ProofReport& report, const TrainingRun& run, const std::string& what, bool as_json) {
  if (as_json) {
    nlohmann::json rows = nlohmann::json::array();
    for (const ProofRow& row : report.rows) {
      rows.push_back({{"quantity", row.quantity},
                      {"distance", row.distance},
                      {"limit", row.limit},
                      {"measure", row.measure},
                      {"worst_tensor", row.worst_tensor},
                      {"passed", row.passed}});
    }
    std::cout << nlohmann::json{{"what", what},
                                {"passed", report.passed()},
                                {"rows", rows},
                                {"idle_ranks", run.idle_ranks}}
                     .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
              << "\n";
  } else {
    std::cout << what << "\n" << report.to_string();
    if (!run.idle_ranks.empty()) {
      std::vector<std::string> ranks;
      for (const int rank : run.idle_ranks) ranks.push_back(cat(rank));
      std::cout << "  note  fewer sequences than ranks: rank " << join(ranks, ", ") << " had none\n";
    }
    std::cout << (report.passed() ? "verified\n" : "NOT verified\n");
  }
  return report.passed() ? 0 : 1;
}

TrainingRunOptions options_of(const VerifyArguments& arguments) {
  TrainingRunOptions options;
  options.layout = arguments.ranks.parsed_layout();
  options.compute = arguments.ranks.parsed_dtype();
  options.session = arguments.ranks.session(options.layout);
  options.trainer.micro_batch = arguments.micro_batch;
  options.trainer.stash = parse_stash_policy(arguments.stash);
  options.trainer.schedule.peak = arguments.learning_rate;
  options.num_steps = arguments.steps;
  return options;
}

int verify_reference(const VerifyArguments& arguments) {
  const TrainingRunOptions options = options_of(arguments);
  const ProofReport report = compare_with_reference(arguments.reference, options);
  if (!options.session.has_rank_0()) return 0;
  return print(report, {},
               cat(arguments.reference, " against its stored numbers, layout ",
                   options.layout.to_string().empty() ? "one rank" : options.layout.to_string()),
               arguments.json_output);
}

int verify_model(const VerifyArguments& arguments) {
  if (arguments.batch < 0 || arguments.sequence_length < 1 || arguments.micro_batch < 1) {
    throw UsageError(cat("[cli] --batch ", arguments.batch, ", --seq-len ", arguments.sequence_length,
                         ", --micro-batch ", arguments.micro_batch, ": use sizes of at least 1"));
  }
  if (arguments.steps < 1) throw UsageError(cat("[cli] --steps ", arguments.steps, ": verify at least 1 step"));
  if (!(arguments.learning_rate > 0 && arguments.learning_rate < 1)) {
    throw UsageError(cat("[cli] --lr ", arguments.learning_rate, ": use a rate between 0 and 1"));
  }
  const TrainingRunOptions options = options_of(arguments);
  const ModelSource model(arguments.model.path, arguments.seed);
  check_trainable(model.spec());
  const std::int64_t batch = arguments.batch > 0 ? arguments.batch : options.layout.mesh.size(Axis::Data) + 1;
  const std::int64_t length = arguments.sequence_length;
  std::unique_ptr<TokenSource> tokens;
  std::unique_ptr<BatchSource> batches;
  if (arguments.data.empty()) {
    batches =
        std::make_unique<RandomBatches>(RandomBatches::Config{model.spec().vocab_size, length, batch, arguments.seed});
  } else {
    tokens = std::make_unique<TokenSource>(arguments.data);
    check_vocabulary(*tokens, model.spec());
    batches = std::make_unique<Batches>(*tokens, Batches::Config{length, batch, arguments.seed});
  }
  // On every rank: where the layout refuses the model, nobody waits for the others.
  const std::vector<std::string> notes = misfit_notes(ParamTable(model.spec()), options.layout, options.compute);
  if (!arguments.json_output && options.session.has_rank_0()) {
    for (const std::string& note : notes) std::cout << "note: " << note << std::endl;
  }
  TrainingRun run;
  const ProofReport report = prove_equivalence(model, *batches, options, &run);
  if (!options.session.has_rank_0()) return 0;
  return print(report, run,
               cat(options.layout.world_size(), options.layout.world_size() == 1 ? " rank" : " ranks",
                   options.layout.to_string().empty() ? "" : " (" + options.layout.to_string() + ")", ", stash ",
                   options.trainer.stash.to_string(), ", against one rank that keeps everything: ", options.num_steps,
                   " steps of ", batch, " sequences of ", length, " tokens, ", element_type_name(options.compute)),
               arguments.json_output);
}

int run_verify(const VerifyArguments& arguments) {
  if (arguments.reference.empty() == arguments.model.path.empty()) {
    throw UsageError("[cli] verify takes either --reference DIR or --model DIR");
  }
  return arguments.reference.empty() ? verify_model(arguments) : verify_reference(arguments);
}

}  // namespace

void add_verify_command(CLI::App& program, Runner& run) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* command = program.add_subcommand("verify", "Show that N ranks compute what one computes; exit 1 if not");
  add_model_option(*command, arguments->model, /*required=*/false);
  CLI::Option* reference =
      command->add_option("--reference", arguments->reference,
                          "A folder with a model and reference.safetensors: compare with its stored numbers");
  command->add_option("--data", arguments->data, "A token file; default: seeded random tokens with ragged labels");
  command->add_option("--batch", arguments->batch, "Sequences per step over all ranks; default: ranks + 1");
  command->add_option("--seq-len", arguments->sequence_length, "Tokens per sequence")->capture_default_str();
  command->add_option("--micro-batch", arguments->micro_batch, "Sequences a rank takes at once")->capture_default_str();
  command->add_option("--steps", arguments->steps, "Training steps")->capture_default_str();
  command->add_option("--lr", arguments->learning_rate, "Learning rate")->capture_default_str();
  command->add_option("--stash", arguments->stash, "keep, recompute, or values to keep: attention,qkv,gate_up")
      ->capture_default_str();
  command->add_option("--seed", arguments->seed, "Of random weights and tokens")->capture_default_str();
  for (const char* option : {"--data", "--batch", "--seq-len", "--steps", "--lr", "--seed"}) {
    reference->excludes(command->get_option(option));  // the stored numbers have their own
  }
  add_rank_options(*command, arguments->ranks);
  add_json_option(*command, arguments->json_output);
  command->footer(
      "Examples:\n"
      "  octavo verify --model DIR --layout data=4:zero1\n"
      "  octavo verify --model config.json --layout data=3 --dtype fp64 --stash recompute\n"
      "  octavo verify --reference tests/data/cases/qwen3 --layout data=2");
  command->callback([arguments, &run] { run = [arguments] { return run_verify(*arguments); }; });
}

}  // namespace octavo::cli
