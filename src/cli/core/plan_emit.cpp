#include <cstdio>
#include <filesystem>

#include "cli/core/command.h"
#include "cli/core/plan_report.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo::cli {
namespace {

/// A TOML basic string.
std::string toml_text(const std::string& text) {
  std::string out = "\"";
  for (const char letter : text) {
    if (static_cast<unsigned char>(letter) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(letter));
      out += code;
      continue;
    }
    if (letter == '"' || letter == '\\') out += '\\';
    out += letter;
  }
  return out + "\"";
}

}  // namespace

void emit_plan(const PlanReport& report, const std::string& model_path, const std::string& file) {
  const PricedPlan& priced = report.detail->priced;
  const PlanRequest& request = report.request;
  try {
    check_runnable(priced.plan.layout);
  } catch (const UsageError& error) {
    throw UsageError(cat("[cli] --emit: octavo train does not run this plan yet (", error.what(),
                         "); search with --runnable for one that it does"));
  }
  const Cluster& cluster = request.cluster;
  std::string text =
      cat("# octavo plan: peak ", format_bytes(priced.memory.total()), " of ", format_bytes(request.memory_limit),
          " on a rank.\n# A step takes ", format_seconds(priced.time.total), " on ", cluster.to_string(),
          " by the constants of ", request.rules.software, ". octavo train itself runs on CPUs today.\n");
  const int ranks = priced.plan.layout.world_size(), per_node = std::min(ranks, cluster.gpus_per_node);
  const int nodes = (ranks - 1) / per_node + 1, last = ranks - (nodes - 1) * per_node;
  text += cat("# Start on every node, a process per rank",
              last < per_node ? cat(" (--nproc-per-node ", last, " on the last)") : "",
              ":\n#   torchrun --no-python --nnodes ", nodes, " --nproc-per-node ", per_node,
              " --rdzv-backend c10d --rdzv-endpoint FIRST_NODE:29400 octavo train --config THIS --data TOKENS\n");
  text +=
      cat("# The model's path is that of this machine; on others, give --model.\n"
          "model = ",
          toml_text(std::filesystem::absolute(model_path).string()), "\n");
  text += cat("layout = ", toml_text(priced.plan.layout.to_string()), "\n");
  text += cat("batch = ", request.job.batch, "\nseq-len = ", request.job.sequence_length,
              "\nmicro-batch = ", priced.plan.micro_batch, "\n");
  text += cat("stash = ", toml_text(priced.plan.stash.to_string()),
              "\ndtype = ", toml_text(std::string(element_type_name(request.job.compute))), "\n");
  write_whole_file(file, text, "--emit");
}

}  // namespace octavo::cli
