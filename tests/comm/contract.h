// The contract that every backend with real peers keeps. A new backend adds one entry to contract_backends() and is
// tested by all cases of contract_test.cpp and contract_failure_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "octavo/comm/world.h"

namespace octavo {

struct ContractRun {
  int num_ranks;
  std::chrono::milliseconds deadline = std::chrono::seconds(60);
};

struct ContractBackend {
  std::string name;
  /// Runs the body on every rank, gradients off. Throws what the first rank threw that was not told so by a peer.
  /// Bodies share no variables between ranks: a backend may run them in processes.
  std::function<void(const ContractRun&, const std::function<void(World&)>&)> run;
  std::vector<int> rank_counts;
  std::vector<at::ScalarType> dtypes;
  bool compares_calls;  // ranks that call different operations are told at once
  bool shares_memory;   // lent memory is the owner's own
};

/// All backends built here.
const std::vector<ContractBackend>& contract_backends();

/// Runs `body` on every backend at every number of ranks that it supports.
void on_all_backends(const std::function<void(World&)>& body, int min_ranks = 1);

/// Throws InternalError with `what` unless `holds`: how a body reports, since it may run in another process.
void expect(bool holds, const std::string& what);

/// The text of the CommError that `action` throws. Throws InternalError if there was none.
std::string comm_error_of(const std::function<void()>& action);

/// What a UsageError says that a call on the first of two ranks throws, before anything is posted; empty without one.
std::string refusal(const ContractBackend& backend, const std::function<void(Communicator&)>& call);

/// All ranks in one group named "data".
std::unique_ptr<Communicator> everyone(World& world);

/// Small whole numbers, a function of (seed, rank, element): every sum of them is exact in every dtype.
at::Tensor whole_numbers(at::IntArrayRef sizes, at::ScalarType dtype, int seed, int rank);

}  // namespace octavo
