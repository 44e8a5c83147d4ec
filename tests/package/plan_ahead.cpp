// Ten lines against the torch-free half: the shards of a small model's largest matrix.
#include <iostream>

#include "octavo/mesh/device_mesh.h"
#include "octavo/spec/model_spec.h"
#include "octavo/spec/parameters.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const octavo::ModelSpec model = octavo::read_model_spec(argv[1]);
  const octavo::DeviceMesh mesh({{octavo::Axis::Data, 2}, {octavo::Axis::Fold, 4}});
  std::cout << mesh.to_string() << ": " << model.vocab_size / mesh.size(octavo::Axis::Fold) << " rows each, "
            << octavo::num_parameters(model) << " parameters\n";
}
