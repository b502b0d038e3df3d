#include "model/compare/inventory.h"

#include <algorithm>

#include "model/program/call_graph.h"
#include "model/program/host_transfer.h"

namespace spillway {
namespace {

Item item_of(const LiveBuffer& buffer) {
  return {buffer.name, buffer.shape, buffer.op_name, buffer.bytes, 1};
}

Item item_of(const Program& program, InstructionId id, Bytes bytes, std::int64_t count) {
  const Computation& computation = program[id.computation];
  const Instruction& instruction = computation[id.instruction];
  return {std::string(instruction.name), to_string(instruction.shape),
          metadata_text(computation, id.instruction, "op_name"), bytes, count};
}

}  // namespace

Inventory take_inventory(const Program& program, const MemoryAssignment& memory,
                         const MemoryReport& report) {
  Inventory inventory;
  for (const LiveBuffer& buffer : report.live_at_peak) inventory.buffers.push_back(item_of(buffer));
  for (const LiveBuffer& array : list_host_arrays(program, memory))
    inventory.host_arrays.push_back(item_of(array));
  for (const TransferSite& site : find_transfers(program)) {
    const bool out = site.transfer.direction == TransferDirection::kDeviceToHost;
    Item item = item_of(program, site.id, site.transfer.bytes, site.runs);
    item.shape = to_string(site.transfer.shape);
    (out ? inventory.offloads : inventory.reloads).push_back(std::move(item));
  }
  const Multiplicity times = multiplicity(program);
  for (const ComputationId id : ids(program.computations)) {
    if (times.runs[id] == 0) continue;
    for (const InstructionIndex i : program[id].instructions())
      if (is_remat_clone(program[id][i]) && !is_free(program[id][i]))
        inventory.clones.push_back(
            item_of(program, {id, i}, program[id][i].shape.bytes(), times.runs[id]));
  }
  return inventory;
}

}  // namespace spillway
