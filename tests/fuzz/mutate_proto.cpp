#include "tests/fuzz/mutate_proto.h"

#include <array>
#include <limits>
#include <random>

#include "model/hlo/proto/hlo.pb.h"

namespace spillway::testing {
namespace {

class ProtoMutator {
 public:
  ProtoMutator(const std::string& bytes, std::uint32_t seed) : random_(seed) {
    file_.ParseFromString(bytes);
  }

  std::string run() {
    const std::size_t times = 1 + below(4);
    for (std::size_t i = 0; i < times; ++i) change();
    std::string bytes = file_.SerializeAsString();
    if (below(8) == 0) flip_bytes(bytes);
    return bytes;
  }

 private:
  using Change = void (ProtoMutator::*)();

  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }
  template <typename List>
  int place(const List& list) {
    return static_cast<int>(below(static_cast<std::size_t>(list.size())));
  }
  std::int64_t number() {
    static constexpr std::array<std::int64_t, 8> kNumbers = {
        0,
        1,
        -1,
        2,
        7,
        1 << 20,
        std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()};
    return kNumbers[below(kNumbers.size())];
  }
  pb::HloComputation& computation() {
    pb::HloModule& module = *file_.mutable_module();
    return *module.mutable_computations(place(module.computations()));
  }
  pb::HloInstruction& instruction(pb::HloComputation& of) {
    return of.instructions().empty() ? *of.add_instructions()
                                     : *of.mutable_instructions(place(of.instructions()));
  }

  void change() {
    static constexpr std::array<Change, 11> kChanges = {
        &ProtoMutator::change_operand, &ProtoMutator::change_operand, &ProtoMutator::change_shape,
        &ProtoMutator::change_shape,   &ProtoMutator::change_opcode,  &ProtoMutator::change_call,
        &ProtoMutator::change_number,  &ProtoMutator::merge,          &ProtoMutator::change_order,
        &ProtoMutator::change_module,  &ProtoMutator::change_memory};
    if (!file_.module().computations().empty()) (this->*kChanges[below(kChanges.size())])();
  }

  void change_operand() {
    pb::HloComputation& of = computation();
    pb::HloInstruction& in = instruction(of);
    const std::int64_t other = below(8) == 0 ? number() : instruction(of).id();
    if (in.operand_ids().empty() || below(4) == 0)
      in.add_operand_ids(other);
    else if (below(4) == 0)
      in.mutable_operand_ids()->RemoveLast();
    else
      in.set_operand_ids(place(in.operand_ids()), other);
  }
  void change_shape() {
    pb::HloComputation& of = computation();
    pb::Shape* shape = instruction(of).mutable_shape();
    if (below(2) == 0) {
      const pb::Shape other = instruction(of).shape();
      *shape = other;
      return;
    }
    while (!shape->tuple_shapes().empty())
      shape = shape->mutable_tuple_shapes(place(shape->tuple_shapes()));
    if (below(3) == 0) shape->set_element_type(static_cast<int>(below(36)));
    if (below(3) == 0) shape->mutable_layout()->set_memory_space(below(2) == 0 ? 5 : number());
    if (below(3) == 0) shape->mutable_layout()->add_minor_to_major(number());
    if (shape->dimensions().empty()) return;
    shape->set_dimensions(place(shape->dimensions()), number());
  }
  void change_opcode() {
    const std::string other = instruction(computation()).opcode();
    instruction(computation()).set_opcode(other);
  }
  void change_call() {
    pb::HloInstruction& in = instruction(computation());
    const std::int64_t callee = below(8) == 0 ? number() : computation().id();
    if (in.called_computation_ids().empty())
      in.add_called_computation_ids(callee);
    else
      in.set_called_computation_ids(place(in.called_computation_ids()), callee);
  }
  void change_number() {
    pb::HloInstruction& in = instruction(computation());
    switch (below(7)) {
      case 0:
        return in.set_tuple_index(number());
      case 1:
        return in.set_parameter_number(number());
      case 2:
        return in.add_dimensions(number());
      case 3:
        return in.set_id(number());
      case 4:
        return in.mutable_backend_config_payload()->set_id(number());
      case 5:
        return in.mutable_backend_config()->resize(in.backend_config().size() / 2);
      default:
        return in.add_control_predecessor_ids(number());
    }
  }
  /// One instruction gets what another has, too.
  void merge() {
    const pb::HloInstruction other = instruction(computation());
    pb::HloInstruction& in = instruction(computation());
    const std::string name = in.name();
    const std::int64_t id = in.id();
    in.MergeFrom(other);
    in.set_name(name);
    in.set_id(id);
  }
  void change_order() {
    auto& sequences = *file_.mutable_module()->mutable_schedule()->mutable_sequences();
    if (sequences.empty()) return;
    auto& order = *sequences[place(sequences)].mutable_sequence()->mutable_instruction_ids();
    if (order.empty()) return;
    if (below(8) == 0) return order.RemoveLast();
    order.SwapElements(place(order), place(order));
  }
  void change_module() {
    pb::HloModule& module = *file_.mutable_module();
    switch (below(4)) {
      case 0:
        return module.set_entry_computation_id(computation().id());
      case 1:
        module.mutable_computations()->SwapElements(place(module.computations()),
                                                    place(module.computations()));
        return;
      case 2: {
        pb::AliasEntry& alias = *module.mutable_input_output_alias()->add_entries();
        alias.set_parameter(number());
        alias.add_output_path(number());
        return;
      }
      default:
        return module.mutable_device_assignment()->set_computation_count(
            static_cast<std::int32_t>(number()));
    }
  }
  void change_memory() {
    pb::BufferAssignment& memory = *file_.mutable_buffer_assignment();
    pb::BufferAllocation& allocation =
        memory.allocations().empty() ? *memory.add_allocations()
                                     : *memory.mutable_allocations(place(memory.allocations()));
    if (below(2) == 0) allocation.set_size(number());
    if (below(4) == 0) allocation.set_color(number());
    if (below(4) == 0) allocation.add_assigned()->set_buffer(number());
  }

  void flip_bytes(std::string& bytes) {
    if (bytes.empty()) return;
    if (below(4) == 0) return bytes.resize(below(bytes.size()));
    bytes[below(bytes.size())] = static_cast<char>(random_());
  }

  pb::HloFile file_;
  std::mt19937 random_;
};

}  // namespace

std::string mutate_proto(const std::string& bytes, std::uint32_t seed) {
  return ProtoMutator(bytes, seed).run();
}

}  // namespace spillway::testing
