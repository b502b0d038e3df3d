#include "model/hlo/proto_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "model/hlo/proto/hlo.pb.h"
#include "model/hlo/proto_values.h"
#include "model/program/opcode.h"

namespace spillway::hlo {
namespace {

/// {{0,1},{2,3}}
void append_listed(std::string& text,
                   const google::protobuf::RepeatedPtrField<pb::ReplicaGroup>& groups) {
  const char* before = "{{";
  for (const pb::ReplicaGroup& group : groups) {
    text += before;
    append_numbers(text, group.ids());
    before = "},{";
  }
  text += "}}";
}

/// [2,4]<=[4,2]T(1,0)
void append_counted(std::string& text, const pb::IotaGroups& groups) {
  text += fmt::format("[{},{}]<=[", groups.groups(), groups.devices_per_group());
  append_numbers(text, groups.reshape());
  text += ']';
  if (std::ranges::is_sorted(groups.permutation())) return;
  text += "T(";
  append_numbers(text, groups.permutation());
  text += ')';
}

/// Longer names are cut: one can be referred to millions of times.
constexpr std::size_t kLongestAxis = 128;

std::string axis_name(const pb::Mesh& mesh, std::int64_t axis) {
  std::string quoted = "'";
  if (axis >= 0 && axis < mesh.axes_size())
    for (const char c :
         std::string_view(mesh.axes(static_cast<int>(axis)).name()).substr(0, kLongestAxis))
      quoted += c >= 0x20 && c < 0x7f && c != '\'' && c != '"' ? c : '_';
  return quoted + '\'';
}

/// mesh['x'=2,'y'=4], device_ids=(…) {'x','y':(2)2}
void append_along_mesh(std::string& text, const pb::MeshGroups& groups) {
  const pb::Mesh& mesh = groups.mesh();
  text += "mesh[";
  for (int i = 0; i < mesh.axes_size(); ++i)
    text += fmt::format("{}{}={}", i > 0 ? "," : "", axis_name(mesh, i), mesh.axes(i).size());
  text += ']';
  if (mesh.device_ids_size() > 0) {
    text += ", device_ids=(";
    append_numbers(text, mesh.device_ids());
    text += ')';
  }
  text += " {";
  for (int i = 0; i < groups.axes_size(); ++i) {
    const pb::AxisReference& axis = groups.axes(i);
    if (i > 0) text += ',';
    text += axis_name(mesh, axis.axis());
    if (axis.has_part()) text += fmt::format(":({}){}", axis.part().pre_size(), axis.part().size());
  }
  text += '}';
}

}  // namespace

void append_replica_groups(std::string& text, const pb::HloInstruction& in) {
  constexpr const char* kName = ", replica_groups=";
  const Opcode opcode = find_opcode(in.opcode());
  if (in.has_mesh_groups())
    append_along_mesh(text += kName, in.mesh_groups());
  else if (in.has_iota_groups())
    append_counted(text += kName, in.iota_groups());
  else if (in.device_list().has_iota())
    append_counted(text += kName, in.device_list().iota());
  else if (in.device_list().groups_size() > 0)
    append_listed(text += kName, in.device_list().groups());
  else if (in.replica_groups_size() > 0)
    append_listed(text += kName, in.replica_groups());
  else if (is_collective(opcode) && opcode != Opcode::kCollectivePermute)
    (text += kName) += "{}";
}

}  // namespace spillway::hlo
