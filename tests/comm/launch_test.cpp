#include "octavo/comm/launch.h"

#include <doctest/doctest.h>

#include <map>

#include "octavo/base/error.h"

namespace octavo {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<Launch> launch_of(const Variables& variables) {
  return read_launch([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  });
}

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

std::string refusal(const Variables& variables) {
  try {
    (void)launch_of(variables);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

bool says(const Variables& variables, const std::string& part) {
  const std::string text = refusal(variables);
  CAPTURE(text);
  CHECK(text.find("[comm] ") == 0);
  CHECK(text.find(part) != std::string::npos);
  return true;
}

const Variables kPlain = {{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "10.0.0.7"}, {"MASTER_PORT", "29501"}};
const Variables kMpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                        {"OMPI_COMM_WORLD_SIZE", "4"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                        {"PMIX_NAMESPACE", "1234567"}};
const Variables kSlurm = {{"SLURM_PROCID", "3"},  {"SLURM_NTASKS", "8"},
                          {"SLURM_STEP_ID", "0"}, {"SLURM_JOB_ID", "424242"},
                          {"SLURM_LOCALID", "1"}, {"SLURM_STEP_NODELIST", "node[07-09,12]"}};

TEST_CASE("without a launcher's variables there is no launch") {
  CHECK(!launch_of({}));
  CHECK(!launch_of({{"MASTER_ADDR", "10.0.0.7"}, {"SLURM_JOB_ID", "7"}}));
}

TEST_CASE("plain variables are read") {
  const auto launch = launch_of(kPlain);
  REQUIRE(launch);
  CHECK(launch->rank == 1);
  CHECK(launch->world_size == 4);
  CHECK(launch->master_address == "10.0.0.7");
  CHECK(launch->master_port == 29501);
  CHECK(launch->interface_name.empty());
  CHECK(!launch->store_is_hosted);
  CHECK(launch->launcher == "variables");
}

TEST_CASE("torchrun hosts the store, and its restarts are told apart") {
  const auto launch = launch_of(with(kPlain, {{"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                              {"TORCHELASTIC_RUN_ID", "none"},
                                              {"TORCHELASTIC_RESTART_COUNT", "2"}}));
  REQUIRE(launch);
  CHECK(launch->store_is_hosted);
  CHECK(launch->launcher == "torchrun");
  CHECK(launch->attempt == "2");
}

TEST_CASE("mpirun on one machine needs no address, and every rank derives the same port") {
  const auto launch = launch_of(kMpi);
  REQUIRE(launch);
  CHECK(launch->rank == 2);
  CHECK(launch->master_address == "127.0.0.1");
  CHECK(launch->master_port >= 1024);
  CHECK(launch->interface_name == "lo");
  CHECK(launch->launcher == "mpirun");
  CHECK(launch_of(with(kMpi, {{"OMPI_COMM_WORLD_RANK", "0"}}))->master_port == launch->master_port);
  CHECK(launch_of(with(kMpi, {{"PMIX_NAMESPACE", "7654321"}}))->master_port != launch->master_port);
  const auto pmi = launch_of({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}});
  REQUIRE(pmi);
  CHECK(pmi->world_size == 2);
}

TEST_CASE("mpirun on several machines needs an address") {
  const Variables several = with(kMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  CHECK(says(several, "MASTER_ADDR"));
  CHECK(launch_of(with(several, {{"MASTER_ADDR", "node1"}}))->master_address == "node1");
}

TEST_CASE("srun's first node is the master, whatever the list looks like") {
  const auto master = [](const std::string& list) {
    return launch_of(with(kSlurm, {{"SLURM_STEP_NODELIST", list}}))->master_address;
  };
  CHECK(master("node[07-09,12]") == "node07");
  CHECK(master("node3") == "node3");
  CHECK(master("a1,b2") == "a1");
  CHECK(master("rack[2]-cell[10-11]") == "rack2-cell10");
  CHECK(master("gpu-[003,005-010]-ib") == "gpu-003-ib");
  const auto launch = launch_of(kSlurm);
  CHECK(launch->rank == 3);
  CHECK(launch->world_size == 8);
  CHECK(launch->launcher == "srun");
  CHECK(launch->master_port >= 1024);
  CHECK(launch_of(with(kSlurm, {{"SLURM_STEP_ID", "1"}}))->master_port != launch->master_port);
  CHECK(says(with(kSlurm, {{"SLURM_STEP_NODELIST", "node[07-"}}), "SLURM_STEP_NODELIST"));
}

TEST_CASE("a batch script's own shell is no launch, nor an allocation's") {
  CHECK(!launch_of(with(kSlurm, {{"SLURM_STEP_ID", "4294967291"}})));
  CHECK(!launch_of(with(kSlurm, {{"SLURM_STEP_ID", "batch"}})));
  Variables shell = kSlurm;
  shell.erase("SLURM_STEP_ID");
  CHECK(!launch_of(shell));
}

TEST_CASE("the interface is the one that is named, or the loopback of a local master") {
  CHECK(launch_of(with(kPlain, {{"GLOO_SOCKET_IFNAME", "eth1"}}))->interface_name == "eth1");
  CHECK(launch_of(with(kPlain, {{"MASTER_ADDR", "127.0.0.1"}}))->interface_name == "lo");
  CHECK(launch_of(with(kPlain, {{"MASTER_ADDR", "localhost"}}))->interface_name == "lo");
}

TEST_CASE("malformed and contradicting variables are refused by name and value") {
  CHECK(says(with(kPlain, {{"RANK", "one"}}), "RANK=\"one\""));
  CHECK(says(with(kPlain, {{"RANK", ""}}), "RANK=\"\""));
  CHECK(says(with(kPlain, {{"RANK", "4"}}), "RANK=\"4\""));
  CHECK(says(with(kPlain, {{"RANK", "-1"}}), "RANK=\"-1\""));
  CHECK(says(with(kPlain, {{"WORLD_SIZE", "0"}}), "WORLD_SIZE=\"0\""));
  CHECK(says(with(kPlain, {{"WORLD_SIZE", "99999999999"}}), "WORLD_SIZE"));
  CHECK(says(with(kPlain, {{"MASTER_PORT", "70000"}}), "MASTER_PORT=\"70000\""));
  CHECK(says(with(kPlain, {{"MASTER_ADDR", ""}}), "MASTER_ADDR"));
  for (const char* missing : {"WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT"}) {
    Variables some = kPlain;
    some.erase(missing);
    CHECK(says(some, missing));
  }
  Variables half = kMpi;
  half.erase("OMPI_COMM_WORLD_SIZE");
  CHECK(says(half, "OMPI_COMM_WORLD_SIZE"));
  CHECK(says(with(kSlurm, {{"SLURM_PROCID", "8"}}), "SLURM_PROCID=\"8\""));
  CHECK(says(with(kPlain, {{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}}), "RANK=\"1\""));
}

}  // namespace
}  // namespace octavo
