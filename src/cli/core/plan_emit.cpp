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
  std::string text = cat("# octavo plan: step ", format_seconds(priced.time.total), " on ", request.cluster.to_string(),
                         ", peak ", format_bytes(priced.memory.total()), " of ", format_bytes(request.memory_limit),
                         " on a rank.\n# Run with: octavo train --config THIS --data TOKENS\n");
  text += cat("model = ", toml_text(std::filesystem::absolute(model_path).string()), "\n");
  text += cat("layout = ", toml_text(priced.plan.layout.to_string()), "\n");
  text += cat("batch = ", request.job.batch, "\nseq-len = ", request.job.sequence_length,
              "\nmicro-batch = ", priced.plan.micro_batch, "\n");
  text += cat("stash = ", toml_text(priced.plan.stash.to_string()),
              "\ndtype = ", toml_text(std::string(element_type_name(request.job.compute))), "\n");
  write_whole_file(file, text, "--emit");
}

}  // namespace octavo::cli
