#include "model/cost/kernel_class.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "model/base/json_value.h"
#include "model/cost/library_call.h"
#include "model/cost/operand_shape.h"

namespace spillway {
namespace {

/// What an instruction does, fusions looked into.
struct Contents {
  bool product = false, attention = false, backward = false, collective = false, sort = false;
  bool unknown = false;
  bool transposes = false;
  bool computes = false;          ///< anything on whole arrays beyond moving them
  bool computes_scalars = false;  ///< where slices start, or a result of one element
  bool slices = false;
  bool contiguous = true;             ///< every slice is one piece of memory
  bool host_knows_offsets = true;     ///< where dynamic slices start
  std::int64_t reduced_elements = 0;  ///< of the largest reduction
  bool reduces_rows = false;
};

/// Dimensions from the slowest to the fastest in memory, those of size 1 left out.
std::vector<std::size_t> physical_order(Shape shape) {
  std::vector<std::size_t> order;
  const auto dims = shape.dims();
  const auto fastest_first = shape.minor_to_major();
  for (std::size_t k = 0; k < dims.size(); ++k) {
    const std::size_t d =
        fastest_first.empty() ? k : static_cast<std::size_t>(fastest_first[dims.size() - 1 - k]);
    if (dims[d] != 1) order.push_back(d);
  }
  return order;
}

bool reduces_rows(Shape input, std::string_view dimensions) {
  const auto order = physical_order(input);
  if (order.empty()) return true;
  const auto reduced = parse_integers(dimensions);
  return std::ranges::find(reduced, static_cast<std::int64_t>(order.back())) != reduced.end();
}

/// A slice is one piece of memory when only its slowest dimension longer than 1 is cut.
///   array [8][4][6]    [1][4][6] and [1][2][6] are contiguous, [2][2][6] and [1][4][3] are not
bool is_contiguous_slice(Shape array, Shape slice) {
  if (array.dims().size() != slice.dims().size()) return false;
  bool inside = false;
  for (const std::size_t d : physical_order(array)) {
    if (inside && slice.dims()[d] != array.dims()[d]) return false;
    inside |= slice.dims()[d] != 1;
  }
  return std::ranges::equal(array.minor_to_major(), slice.minor_to_major());
}

/// Whether elements change their order in memory, other than around dimensions of size 1.
bool reorders(const Computation& computation, InstructionIndex i) {
  const Instruction& in = computation[i];
  const Shape from = operand_shape(computation, i, 0);
  if (from.is_tuple() || in.shape.is_tuple()) return false;
  auto source = physical_order(from);
  const auto target = physical_order(in.shape);
  if (in.opcode == Opcode::kCopy) return source != target;
  const auto permutation = parse_integers(computation.attribute(i, "dimensions").value_or(""));
  for (std::size_t& d : source) {
    const auto at = std::ranges::find(permutation, static_cast<std::int64_t>(d));
    d = static_cast<std::size_t>(at - permutation.begin());
  }
  return source != target;
}

void look_into(const Program& program, ComputationId id, Contents& contents);

void look_at_call(const Computation& computation, InstructionIndex i, Contents& contents) {
  switch (library_kernel(computation, i)) {
    case LibraryKernel::kNothing:
      break;
    case LibraryKernel::kGemm:
    case LibraryKernel::kConvolution:
      contents.product = true;
      break;
    case LibraryKernel::kAttentionBackward:
      contents.backward = true;
      [[fallthrough]];
    case LibraryKernel::kAttentionForward:
      contents.attention = true;
      break;
    case LibraryKernel::kUnknown:
      contents.unknown = true;
      break;
  }
}

void look_at_reduction(const Computation& computation, InstructionIndex i, Contents& contents) {
  const Shape input = operand_shape(computation, i, 0);
  contents.computes = true;
  if (input.elements() <= contents.reduced_elements) return;
  contents.reduced_elements = input.elements();
  contents.reduces_rows = reduces_rows(input, computation.attribute(i, "dimensions").value_or(""));
}

void look_at_slice(const Computation& computation, InstructionIndex i, Contents& contents) {
  const bool updates = computation[i].opcode == Opcode::kDynamicUpdateSlice;
  const Shape array = updates ? computation[i].shape : operand_shape(computation, i, 0);
  const Shape slice = updates ? operand_shape(computation, i, 1) : computation[i].shape;
  contents.slices = true;
  contents.contiguous &= is_contiguous_slice(array, slice);
  if (computation[i].opcode == Opcode::kSlice) return;
  const std::string_view config = computation.attribute(i, "backend_config").value_or("");
  contents.host_knows_offsets &= !json_value(config, "dynamic_slice_config").empty();
}

void look_at(const Program& program, InstructionId id, Contents& contents) {
  const Computation& computation = program[id.computation];
  const InstructionIndex i = id.instruction;
  const Instruction& in = computation[i];
  switch (in.opcode) {
    case Opcode::kFusion:
      return look_into(program, called_by(computation, i), contents);
    case Opcode::kCustomCall:
      return look_at_call(computation, i, contents);
    case Opcode::kDot:
    case Opcode::kRaggedDot:
    case Opcode::kScaledDot:
    case Opcode::kConvolution:
      contents.product = true;
      return;
    case Opcode::kReduce:
      return look_at_reduction(computation, i, contents);
    case Opcode::kDynamicSlice:
    case Opcode::kDynamicUpdateSlice:
    case Opcode::kSlice:
      return look_at_slice(computation, i, contents);
    case Opcode::kSort:
      contents.sort = true;
      return;
    case Opcode::kUnknown:
    case Opcode::kSend:
    case Opcode::kInfeed:
    case Opcode::kOutfeed:
      contents.unknown = true;
      return;
    case Opcode::kCopy:
    case Opcode::kTranspose:
      contents.transposes |= reorders(computation, i);
      return;
    case Opcode::kBitcast:
    case Opcode::kReshape:
    case Opcode::kConstant:
    case Opcode::kParameter:
    case Opcode::kTuple:
      return;
    default:
      contents.collective |= is_collective(in.opcode);
      if (in.shape.is_tuple() || in.shape.elements() > 1)
        contents.computes = true;
      else
        contents.computes_scalars = true;
  }
}

void look_into(const Program& program, ComputationId id, Contents& contents) {
  for (const InstructionIndex i : program[id].instructions()) look_at(program, {id, i}, contents);
}

bool touches_host(const Computation& computation, InstructionIndex i) {
  const Shape result = computation[i].shape;
  for (ShapeNodeIndex node = 0; node < result.node_count(); ++node)
    if (is_host(result.at(node).space())) return true;
  for (const Operand& operand : computation.operands(i))
    if (is_host(computation.shape_of(operand).space())) return true;
  return false;
}

/// XLA issues a memory copy where nothing is computed and the host knows the addresses: a whole
/// array in the same layout, or one contiguous slice at a constant or a loop counter. Copies to and
/// from host memory always are.
KernelKind copy_kind(const Computation& computation, InstructionIndex i, const Contents& contents) {
  if (touches_host(computation, i))
    return {contents.slices ? KernelClass::kSliceCopy : KernelClass::kCopy, true};
  const auto arrays = static_cast<int>(std::max(computation[i].shape.tuple_size(), 1u));
  if (!contents.slices) return {KernelClass::kCopy, true, arrays};
  const std::string_view config = computation.attribute(i, "backend_config").value_or("");
  const bool offsets_known =
      contents.host_knows_offsets || config.find("\"__dynamic_memcpy\"") != std::string_view::npos;
  const bool is_one_piece = contents.contiguous && !computation[i].shape.is_tuple();
  return {KernelClass::kSliceCopy, offsets_known && is_one_piece};
}

std::int64_t largest_result(Shape shape) {
  std::int64_t largest = 0;
  for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node)
    if (shape.at(node).is_array()) largest = std::max(largest, shape.at(node).elements());
  return largest;
}

KernelClass reduction_class(const Contents& contents) {
  return contents.reduces_rows ? KernelClass::kRowReduce : KernelClass::kColumnReduce;
}

KernelKind kind_of(const Computation& computation, InstructionIndex i, const Contents& contents) {
  if (contents.collective) return {KernelClass::kCollective};
  if (contents.attention)
    return {contents.backward ? KernelClass::kAttentionBackward : KernelClass::kAttentionForward};
  if (contents.product) return {KernelClass::kGemm};
  if (contents.unknown) return {KernelClass::kUnknown};
  if (contents.sort) return {KernelClass::kSort};
  // A reduction of less than the kernel writes is a detail of something else.
  const std::int64_t results = largest_result(computation[i].shape);
  const bool reduces = contents.reduced_elements > 0 && contents.reduced_elements >= results;
  if (contents.transposes) {
    const bool is_tiled = !reduces && has_attribute(computation, i, "kind", "kInput");
    return {is_tiled ? KernelClass::kTiledTranspose : KernelClass::kTranspose};
  }
  if (reduces) return {reduction_class(contents)};
  if (contents.computes || (contents.computes_scalars && results <= 1))
    return {KernelClass::kElementwise};
  return copy_kind(computation, i, contents);
}

/// What an async start wraps: one operation, perhaps between bitcasts.
KernelKind wrapped_kind(const Program& program, ComputationId wrapped) {
  for (const InstructionIndex i : program[wrapped].instructions())
    if (const KernelKind kind = kernel_kind(program, {wrapped, i});
        kind.kernel != KernelClass::kFree)
      return kind;
  return {};
}

}  // namespace

std::string_view name_of(KernelClass kernel) {
  constexpr std::string_view kNames[] = {
      "free",        "gemm",       "attention forward", "attention backward",
      "elementwise", "row reduce", "column reduce",     "tiled transpose",
      "transpose",   "copy",       "slice copy",        "sort",
      "collective",  "unknown"};
  return kNames[static_cast<std::size_t>(kernel)];
}

KernelKind kernel_kind(const Program& program, InstructionId id) {
  const Computation& computation = program[id.computation];
  const Instruction& in = computation[id.instruction];
  if (is_free(in) || is_async_done(in.opcode)) return {};
  switch (in.opcode) {
    case Opcode::kAsyncStart:
      return wrapped_kind(program, called_by(computation, id.instruction));
    case Opcode::kAsyncUpdate:
    case Opcode::kCall:
    case Opcode::kConditional:
    case Opcode::kRecv:
    case Opcode::kWhile:
      return {};
    case Opcode::kAllGatherStart:
    case Opcode::kAllReduceStart:
    case Opcode::kAllToAllStart:
    case Opcode::kCollectivePermuteStart:
    case Opcode::kReduceScatterStart:
      return {KernelClass::kCollective};
    case Opcode::kCopyStart:
      return {KernelClass::kCopy, true};
    case Opcode::kCustomCall:
      if (library_kernel(computation, id.instruction) == LibraryKernel::kNothing) return {};
      break;
    default:
      break;
  }
  Contents contents;
  look_at(program, id, contents);
  return kind_of(computation, id.instruction, contents);
}

}  // namespace spillway
