// A step of attention and one product, of any batch and sequence, as two compiles of it might be
// written: names of instructions differ, and so may what XLA calls the workspace of a library.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "tests/support/toy_program.h"

namespace spillway::testing {

struct ToyStep {
  std::int64_t batch = 2, sequence = 8;
  std::int64_t workspace = 0;    ///< of the library's call; 0: a byte a token
  std::int64_t model = 4;        ///< width of a token
  std::int64_t chunk_trips = 2;  ///< of a loop that does nothing
  const char* suffix = "";       ///< of the names
  const char* type = "f32";      ///< of the weights
  bool has_bias = false;         ///< one more argument
};

inline Program toy_step(const ToyStep& s) {
  const std::int64_t tokens = s.batch * s.sequence;
  using namespace fmt::literals;
  const std::string text = fmt::format(
      R"(
%body (state{x}: s32[]) -> s32[] {{
  %state{x} = s32[] parameter(0)
  ROOT %next{x} = s32[] add(%state{x}, %state{x})
}}

%less (state2{x}: s32[]) -> pred[] {{
  %state2{x} = s32[] parameter(0)
  ROOT %lt{x} = pred[] compare(%state2{x}, %state2{x}), direction=LT
}}

ENTRY %main {{
  %tokens{x} = s32[{b},{s}] parameter(0)
  %table{x} = {t}[100,{m}] parameter(1)
  %w{x} = {t}[{m},16] parameter(2){bias}
  %embed{x} = {t}[{b},{s},{m}] gather(%table{x}, %tokens{x}), offset_dims={{2}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=2, slice_sizes={{1,{m}}}, metadata={{op_name="jit(step)/embed"}}
  %flat{x} = {t}[{bs},{m}] reshape(%embed{x})
  %h{x} = {t}[{bs},16] dot(%flat{x}, %w{x}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, metadata={{op_name="jit(step)/h"}}
  %wide{x} = {t}[{b},{s},16] reshape(%h{x}), metadata={{op_name="jit(step)/h"}}
  %scores{x} = {t}[{b},{s},{s}] dot(%embed{x}, %embed{x}), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}, metadata={{op_name="jit(step)/scores"}}
  %call{x} = ({t}[{b},{s},16], u8[{ws}]) custom-call(%wide{x}, %scores{x}), custom_call_target="library", metadata={{op_name="jit(step)/call"}}
  %zero{x} = s32[] constant(0)
  %loop{x} = s32[] while(%zero{x}), condition=%less, body=%body, metadata={{op_name="jit(step)/while"}}, backend_config={{"known_trip_count":{{"n":"{trips}"}}}}
  ROOT %out{x} = ({t}[{b},{s},16], s32[]) tuple(%call{x}#0, %loop{x})
}}
)",
      "x"_a = s.suffix, "b"_a = s.batch, "s"_a = s.sequence, "bs"_a = tokens, "m"_a = s.model,
      "t"_a = s.type, "ws"_a = s.workspace > 0 ? s.workspace : tokens, "trips"_a = s.chunk_trips,
      "bias"_a = s.has_bias ? "\n  %bias = f32[16] parameter(3)" : "");
  return toy_program(text);
}

}  // namespace spillway::testing
