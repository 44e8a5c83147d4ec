// Parts of reports for programs that several commands spell the same way.
#pragma once

#include <nlohmann/json.hpp>

#include "octavo/memory/account.h"
#include "octavo/trace/ledger.h"

namespace octavo::cli {

/// {"weights": bytes, ...}
nlohmann::json categories_json(const MemorySnapshot& memory);

/// Group, purpose, kind, count and logical bytes.
nlohmann::json traffic_json(const LedgerRow& row);

}  // namespace octavo::cli
