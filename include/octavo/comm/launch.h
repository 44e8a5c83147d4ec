// How a launcher told this process which rank it is: torchrun, mpirun, srun, or plain variables. No libtorch in here.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace octavo {

struct Launch {
  int rank = 0;
  int world_size = 1;
  int ranks_on_machine = 1;    // of this job, where the launcher says; else all of them
  std::string master_address;  // where rank 0's machine, or the launcher, hosts the store
  int master_port = 0;
  std::string interface_name;    // of the network, as "eth0"; empty: the one that reaches the master
  bool store_is_hosted = false;  // by the launcher; else rank 0 hosts it
  std::string launcher;          // for messages: "torchrun", "variables", "mpirun", "srun"
  std::string attempt;           // tells restarts apart that share a hosted store
};

/// Reads an environment variable; nullopt if it is not set.
using VariableReader = std::function<std::optional<std::string>(const std::string&)>;

/// What the variables say; nullopt without a launcher. In this order:
///   RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT   torchrun, or set by hand. With TORCHELASTIC_USE_AGENT_STORE=True the
///                                                launcher hosts the store.
///   OMPI_COMM_WORLD_RANK and _SIZE, PMI_RANK and _SIZE   mpirun. On one machine 127.0.0.1 and a port derived from the
///                                                job; on several MASTER_ADDR (and MASTER_PORT) must be set.
///   SLURM_PROCID, SLURM_NTASKS                   srun: the first host of the step's node list, a port derived from the
///                                                job's and the step's numbers. A batch script's own shell, which srun
///                                                did not start, is no launch.
/// MASTER_ADDR and MASTER_PORT hold for all of them; GLOO_SOCKET_IFNAME names the interface, a master at 127.0.0.1 or
/// localhost means "lo". Throws UsageError naming the variable and its value if one is malformed or missing, or if they
/// contradict each other.
std::optional<Launch> read_launch(const VariableReader& variable);

}  // namespace octavo
