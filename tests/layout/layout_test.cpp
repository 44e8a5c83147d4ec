#include "octavo/layout/layout.h"

#include <doctest/doctest.h>

#include "octavo/base/error.h"

using namespace octavo;

TEST_CASE("a layout without axes is one rank") {
  CHECK(parse_layout("").world_size() == 1);
  CHECK(parse_layout("  ").to_string().empty());
}

TEST_CASE("what a layout prints parses back to the same layout") {
  for (const char* text :
       {"data=4", "data=4:zero1", "data=1:zero1", "pipeline=1 data=3 tensor=1", "tensor=4:scatter:pad",
        "data=2:zero1 tensor=2:replicate", "tensor=1:scatter", "fold=8", "fold=2:activations:contiguous",
        "data=2 fold=3:weights", "fold=4:direct", "fold=4:buckets-3", "fold=3:weights:direct:contiguous",
        "data=8:zero3", "pipeline=4:interleaved-5 data=2", "pipeline=2:gpipe", "pipeline=2:zb expert=4",
        "sequence=8:ulysses", "data=1:zero3 sequence=2:ring:contiguous"}) {
    CAPTURE(text);
    const Layout layout = parse_layout(text);
    CHECK(layout.to_string() == text);
    CHECK(parse_layout(layout.to_string()).zero == layout.zero);
    CHECK(parse_layout(layout.to_string()).tensor_form == layout.tensor_form);
    CHECK(parse_layout(layout.to_string()).misfit == layout.misfit);
    CHECK(parse_layout(layout.to_string()).fold_form == layout.fold_form);
    CHECK(parse_layout(layout.to_string()).fold_route == layout.fold_route);
    CHECK(parse_layout(layout.to_string()).pipeline_form == layout.pipeline_form);
    CHECK(parse_layout(layout.to_string()).virtual_stages == layout.virtual_stages);
    CHECK(parse_layout(layout.to_string()).sequence_form == layout.sequence_form);
    CHECK(parse_layout(layout.to_string()).sequence_order == layout.sequence_order);
  }
}

TEST_CASE("the default option may be written out") {
  CHECK(parse_layout("data=2:zero0").zero == ZeroStage::None);
  CHECK(parse_layout("data=2:zero0").to_string() == "data=2");
  CHECK(parse_layout("fold=2:ring:weights").to_string() == "fold=2:weights");
}

TEST_CASE("options stand in any order") {
  CHECK(parse_layout("tensor=2:pad:scatter").to_string() == "tensor=2:scatter:pad");
}

TEST_CASE("a layout refuses what it cannot mean") {
  for (const char* text : {"data",
                           "data=",
                           "data=0",
                           "data=-1",
                           "data=2x",
                           "data=1.5",
                           "date=2",
                           "data=2 data=2",
                           "data=2:zero2",
                           "data=2:zero0:zero1",
                           "data=2:zero1:zero1",
                           "data=99999999999",
                           "=2",
                           "data=2:",
                           "data=65536 data=65536",
                           "tensor=2:pad:replicate",
                           "tensor=2:zero1",
                           "fold=2:weights:ring:direct",
                           "fold=2:buckets-0",
                           "fold=2:buckets-x",
                           "fold=2:buckets-2:buckets-2",
                           "fold=2:buckets-9999999999",
                           "data=2:buckets-2",
                           "pipeline=2:interleaved-1",
                           "pipeline=2:gpipe:interleaved-2",
                           "pipeline=2:interleaved-2:1f1b",
                           "sequence=2:ring:ulysses",
                           "expert=2:zero1"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_layout(text), UsageError);
  }
}

TEST_CASE("interleaving says its number of parts") {
  CHECK(parse_layout("pipeline=4:interleaved-5").pipeline_form == PipelineForm::Interleaved);
  CHECK(parse_layout("pipeline=4:interleaved-5").virtual_stages == 5);
  CHECK(parse_layout("pipeline=4").virtual_stages == 1);
}

TEST_CASE("what can be priced and is not built is refused where it would run") {
  for (const char* text : {"pipeline=2", "expert=2", "data=2 sequence=2", "data=2:zero3", "data=1:zero3"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(parse_runnable_layout(text), doctest::Contains("not built"), UsageError);
  }
  for (const char* text : {"", "pipeline=1 expert=1", "data=2:zero1 tensor=2 fold=2", "sequence=1:ulysses"}) {
    CHECK_NOTHROW(parse_runnable_layout(text));
  }
}

TEST_CASE("an unknown axis is answered with the nearest one") {
  CHECK_THROWS_WITH_AS(parse_layout("dat=2"), doctest::Contains("did you mean \"data\""), UsageError);
}
