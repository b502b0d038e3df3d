// A scanned step whose layers' inputs live in pinned host memory between forward and backward, of
// any size: what a carry offload looks like to XLA.
//
//   forward    x = x · w, `products` times        saves each layer's x with an async copy
//   backward   fetches x, g = x · w, twice as often; fetches and waits in the same iteration, or
//              one iteration ahead
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace spillway::testing {

struct CarryScan {
  std::int64_t layers = 4;
  std::int64_t rows = 8, width = 4;  ///< of the carry, in bf16
  int products = 1;                  ///< of a forward layer
  int slices = 0;                    ///< arrays that a forward layer copies within HBM beside it
  bool pipelined = false;            ///< backward fetches one iteration ahead
  int devices = 1;

  std::int64_t carry_bytes() const { return rows * width * 2; }

  std::string text() const {
    return fmt::format("HloModule carry, is_scheduled=true, num_partitions={}\n\n", devices) +
           called() + forward() + backward() + condition("forward_less", forward_state()) +
           condition("backward_less", backward_state()) + entry();
  }

 private:
  std::string carry() const { return fmt::format("bf16[{},{}]{{1,0}}", rows, width); }
  std::string layer() const { return fmt::format("bf16[1,{},{}]{{2,1,0}}", rows, width); }
  std::string stack() const {
    return fmt::format("bf16[{},{},{}]{{2,1,0:S(5)}}", layers, rows, width);
  }
  std::string weight() const { return fmt::format("bf16[{0},{0}]{{1,0}}", width); }
  std::string forward_state() const {
    return fmt::format("(s32[], {}, {}, {})", carry(), stack(), weight());
  }
  std::string ticket() const {
    return fmt::format("(({}, s32[], s32[]), {}, u32[])", stack(), layer());
  }
  std::string backward_state() const {
    return fmt::format("(s32[], {}, {}, {}{})", carry(), stack(), weight(),
                       pipelined ? ", " + ticket() : "");
  }

  std::string called() const {
    return fmt::format(
        "%save {{\n  %s0 = {0} parameter(0)\n  %s1 = {1} parameter(1)\n  %s2 = s32[] parameter(2)\n"
        "  %s3 = s32[] parameter(3)\n  ROOT %su = {0} dynamic-update-slice(%s0, %s1, %s2, %s3, "
        "%s3)\n}}\n\n"
        "%load {{\n  %l0 = {0} parameter(0)\n  %l1 = s32[] parameter(1)\n  %l2 = s32[] "
        "parameter(2)\n  ROOT %ls = {1} dynamic-slice(%l0, %l1, %l2, %l2), "
        "dynamic_slice_sizes={{1,{2},{3}}}\n}}\n\n",
        stack(), layer(), rows, width);
  }

  std::string chain(const std::string& name, const std::string& from, int count) const {
    std::string out, last = from;
    for (int k = 0; k < count; ++k) {
      out += fmt::format(
          "  %{0}{1} = {2} dot(%{3}, %{4}#3), lhs_contracting_dims={{1}}, "
          "rhs_contracting_dims={{0}}\n",
          name, k, carry(), last, name == "f" ? "fs" : "bs");
      last = fmt::format("{}{}", name, k);
    }
    return out;
  }

  std::string forward() const {
    std::string out = fmt::format(
        "%forward {{\n  %fs = {0} parameter(0)\n  %fzero = s32[] constant(0)\n"
        "  %fone = s32[] constant(1)\n  %fx = {1} bitcast(%fs#1)\n"
        "  %out = (({2}, {1}, s32[], s32[]), {2}, u32[]) async-start(%fs#2, %fx, %fs#0, %fzero), "
        "calls=%save\n",
        forward_state(), layer(), stack());
    std::string used;
    for (int k = 0; k < slices; ++k) {
      out += fmt::format("  %slice{0} = ({1}, {1}, u32[]) copy-start(%fs#3)\n", k, weight());
      used += fmt::format("  %slice{0}.done = {1} copy-done(%slice{0})\n", k, weight());
    }
    out += used + chain("f", "fs#1", products);
    return out + fmt::format(
                     "  %fnext = s32[] add(%fs#0, %fone)\n  %out.done = {0} "
                     "async-done(%out)\n  ROOT %fr = {1} tuple(%fnext, %f{2}, %out.done, "
                     "%fs#3)\n}}\n\n",
                     stack(), forward_state(), products - 1);
  }

  std::string fetch(const std::string& name, const std::string& of, const std::string& index,
                    const std::string& zero) const {
    return fmt::format("  %{} = {} async-start(%{}, %{}, %{}), calls=%load\n", name, ticket(), of,
                       index, zero);
  }

  std::string backward() const {
    std::string out = fmt::format(
        "%backward {{\n  %bs = {} parameter(0)\n  %bzero = s32[] constant(0)\n"
        "  %bone = s32[] constant(1)\n",
        backward_state());
    const std::string start = fetch("in", "bs#2", "bs#0", "bzero");
    const std::string done =
        fmt::format("  %in.done = {} async-done(%{})\n", layer(), pipelined ? "bs#4" : "in");
    out += pipelined ? done + start : start + done;
    out += fmt::format("  %bx = {} bitcast(%in.done)\n", carry()) + chain("b", "bx", 2 * products);
    return out + fmt::format(
                     "  %bnext = s32[] subtract(%bs#0, %bone)\n  ROOT %br = {} "
                     "tuple(%bnext, %b{}, %bs#2, %bs#3{})\n}}\n\n",
                     backward_state(), 2 * products - 1, pipelined ? ", %in" : "");
  }

  std::string condition(const std::string& name, const std::string& state) const {
    return fmt::format(
        "%{0} {{\n  %p.{0} = {1} parameter(0)\n  ROOT %t.{0} = pred[] constant(true)\n}}\n\n", name,
        state);
  }

  std::string entry() const {
    const auto loop = [](const std::string& name, const std::string& state,
                         const std::string& operand, std::int64_t trips) {
      return fmt::format(
          "  %{0}loop = {1} while(%{2}), condition=%{0}_less, body=%{0}, "
          "backend_config={{\"known_trip_count\":{{\"n\":\"{3}\"}}}}\n",
          name, state, operand, trips);
    };
    std::string out = fmt::format(
        "ENTRY %main {{\n  %x = {0} parameter(0)\n  %w = {1} parameter(1)\n"
        "  %zero = s32[] constant(0)\n  %host = {2} custom-call(), "
        "custom_call_target=\"AllocateBuffer\"\n  %f0 = {3} tuple(%zero, %x, %host, %w)\n",
        carry(), weight(), stack(), forward_state());
    out += loop("forward", forward_state(), "f0", layers);
    if (pipelined) out += fetch("first", "forwardloop#2", "zero", "zero");
    out += fmt::format("  %b0 = {} tuple(%zero, %forwardloop#1, %forwardloop#2, %w{})\n",
                       backward_state(), pipelined ? ", %first" : "");
    out += loop("backward", backward_state(), "b0", layers);
    if (pipelined) out += fmt::format("  %last = {} async-done(%backwardloop#4)\n", layer());
    return out + fmt::format("  ROOT %r = {} copy(%backwardloop#1)\n}}\n", carry());
  }
};

}  // namespace spillway::testing
