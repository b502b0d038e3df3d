#include "model/residuals/unrolled.h"

#include <algorithm>

#include "model/residuals/crossing_values.h"
#include "model/residuals/match_names.h"
#include "model/residuals/unrolled_layers.h"

namespace spillway {
namespace {

class UnrolledFinder {
 public:
  UnrolledFinder(const Program& program, const Lifetimes& memory)
      : program_(program),
        entry_(program.entry_computation()),
        position_(memory.schedule.position[program.entry]),
        parts_(program) {}

  UnrolledTable run(const NameList& names) {
    UnrolledTable table;
    const std::vector<CrossingGroup> groups = find_crossing_groups(program_, parts_);
    if (groups.empty()) {
      table.layer_of.resize(entry_.size());
      return table;
    }
    find_backward_layers(program_, parts_, groups, table);
    for (const CrossingGroup& group : groups)
      table.residuals.push(describe(group, table.residuals.size(), names));
    return table;
  }

 private:
  UnrolledResidual describe(const CrossingGroup& group, std::size_t number,
                            const NameList& names) const;
  UnrolledValue describe_layer(Operand value) const;
  bool comes_from_host(Operand read) const;
  Shape shape_that_fits(Operand value, const NameList& names) const;

  const Program& program_;
  const Computation& entry_;
  const std::vector<LogicalTime>& position_;
  const StepParts parts_;
};

UnrolledValue UnrolledFinder::describe_layer(Operand value) const {
  UnrolledValue out{value, backward_reads(program_, parts_, value), {}, {}, {}, {}};
  out.defined_at = out.last_forward_use = position_[value.instruction.index];
  out.first_backward_use = out.last_use = position_[out.reads.front().reader.index];
  for (const UnrolledValue::Read& read : out.reads) {
    out.first_backward_use = std::min(out.first_backward_use, position_[read.reader.index]);
    out.last_use = std::max(out.last_use, position_[read.reader.index]);
  }
  std::vector<Operand> names = {value};
  for (std::size_t k = 0; k < names.size(); ++k)
    for (const Use& use : entry_.uses(names[k].instruction)) {
      if (entry_.operands(use.user)[use.operand_number] != names[k]) continue;
      if (const auto next = parts_.handed_on(use))
        names.push_back(*next);
      else if (parts_.part(use.user) == StepPart::kForward)
        out.last_forward_use = std::max(out.last_forward_use, position_[use.user.index]);
    }
  return out;
}

/// A value is made under one shape and read under others; the one that a name has, if one does.
Shape UnrolledFinder::shape_that_fits(Operand value, const NameList& names) const {
  std::vector<Operand> renamed = {value};
  for (std::size_t k = 0; k < renamed.size(); ++k)
    for (const Use& use : entry_.uses(renamed[k].instruction))
      if (is_renaming(entry_[use.user].opcode) &&
          entry_.operands(use.user)[use.operand_number] == renamed[k])
        renamed.push_back({use.user, 0});
  const std::int64_t devices = std::max(names.devices, program_.device_count());
  for (const auto fits : {may_be_shard, may_be_transposed_shard})
    for (const Operand& candidate : renamed)
      for (const CheckpointName& name : names.names)
        if (fits(name, entry_.shape_of(candidate), 1, devices)) return entry_.shape_of(candidate);
  return entry_.shape_of(value);
}

/// Whether what is read has been on the host; a value is either for all who read it.
bool UnrolledFinder::comes_from_host(Operand read) const {
  while (parts_.hands_on(read.instruction)) {
    const Opcode opcode = entry_[read.instruction].opcode;
    if (opcode == Opcode::kCopyDone) return true;
    read = entry_.operands(read.instruction)[opcode == Opcode::kTuple ? read.node - 1 : 0];
  }
  return false;
}

UnrolledResidual UnrolledFinder::describe(const CrossingGroup& group, std::size_t number,
                                          const NameList& names) const {
  UnrolledResidual out;
  out.id = "u" + std::to_string(number);
  const Operand last = group.layers.back();
  out.source = source_line(program_, {program_.entry, last.instruction});
  out.op_name = metadata_text(entry_, last.instruction, "op_name");
  out.shape = shape_that_fits(last, names);
  out.is_layer_input = group.is_layer_input;
  for (const Operand& value : group.layers) {
    out.layers.push_back(describe_layer(value));
    const UnrolledValue::Read& read = out.layers.back().reads.front();
    if (comes_from_host(entry_.operands(read.reader)[read.operand]))
      out.placement = Placement::kPinnedHost;
  }
  return out;
}

/// Names each once, whether or not the sidecar lists them for every layer.
NameList once_each(const NameList& names) {
  NameList once = names;
  once.names.clear();
  for (const CheckpointName& name : names.names)
    if (std::ranges::find(once.names, name.name, &CheckpointName::name) == once.names.end())
      once.names.push_back(name);
  return once;
}

}  // namespace

Bytes UnrolledResidual::total_bytes() const {
  return Bytes(bytes_per_layer().value() * static_cast<std::int64_t>(layers.size()));
}

UnrolledTable find_unrolled_residuals(const Program& program, const Lifetimes& memory,
                                      const NameList& given) {
  const NameList names = once_each(given);
  UnrolledTable table = UnrolledFinder(program, memory).run(names);
  // By the same rules as the stacks of scanned programs, of which one layer is a slice.
  ResidualTable slices;
  for (const UnrolledResidual& residual : table.residuals) {
    Residual slice;
    slice.source = residual.source;
    slice.slice = residual.shape;
    slice.layers = 1;
    slice.is_layer_input = residual.is_layer_input;
    slices.residuals.push(std::move(slice));
  }
  match_names(names, program.device_count(), slices);
  for (const UnrolledId id : ids(table.residuals)) {
    table.residuals[id].names = slices.residuals[ResidualId(id.index)].names;
    table.residuals[id].evidence = slices.residuals[ResidualId(id.index)].evidence;
  }
  table.unmatched_names = slices.unmatched_names;
  return table;
}

}  // namespace spillway
