#include "model/hlo/proto_reader.h"

#include <fmt/format.h>
#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "model/hlo/proto/hlo.pb.h"
#include "model/hlo/proto_assignment.h"
#include "model/hlo/proto_text.h"
#include "model/hlo/text_reader.h"

namespace spillway::hlo {
namespace {

constexpr std::size_t kArenaBlock = std::size_t{1} << 20;
constexpr const char* kGiveOptimised =
    "give the …after_optimizations.hlo.pb that --xla_dump_hlo_as_proto writes, or the text beside "
    "it";

Error proto_error(const std::string& path, std::string text, std::string advice = "") {
  return Error{ErrorKind::kInput, std::move(text), {path, {}, {}}, "", std::move(advice)};
}

/// Where the fields of the outermost message stop making sense, if they do.
struct Outline {
  bool is_cut = false;
  bool is_damaged = false;
};

Outline look_at_fields(std::string_view bytes) {
  constexpr std::uint32_t kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  const int size = static_cast<int>(bytes.size());
  while (stream.CurrentPosition() < size) {
    const std::uint32_t tag = stream.ReadTag();
    if (tag >> 3 == 0) return {.is_damaged = true};
    std::uint64_t value = 0;
    std::uint32_t half = 0;
    switch (tag & 7) {
      case kVarint:
        if (!stream.ReadVarint64(&value)) return {.is_cut = true};
        break;
      case kFixed64:
        if (!stream.ReadLittleEndian64(&value)) return {.is_cut = true};
        break;
      case kBytes:
        if (!stream.ReadVarint64(&value)) return {.is_cut = true};
        if (value > static_cast<std::uint64_t>(size - stream.CurrentPosition()))
          return {.is_cut = true};
        stream.Skip(static_cast<int>(value));
        break;
      case kFixed32:
        if (!stream.ReadLittleEndian32(&half)) return {.is_cut = true};
        break;
      default:
        return {.is_damaged = true};
    }
  }
  return {};
}

/// Reads the module, in a HloProto or alone, into `file`.
std::optional<Error> parse(const std::string& bytes, const std::string& path, pb::HloFile& file) {
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    return proto_error(path, "is larger than any proto can be (2 GiB)", kGiveOptimised);
  const auto size = static_cast<int>(bytes.size());
  const bool is_file = file.ParseFromArray(bytes.data(), size);
  if (is_file && file.module().computations_size() > 0) return std::nullopt;
  pb::HloModule module;
  if (module.ParseFromArray(bytes.data(), size) && module.computations_size() > 0) {
    file.Clear();
    file.mutable_module()->Swap(&module);
    return std::nullopt;
  }
  if (is_file) return proto_error(path, "is a proto, but holds no HLO module", kGiveOptimised);
  const Outline outline = look_at_fields(bytes);
  if (outline.is_cut)
    return proto_error(path, "is a proto that ends too early", "the file may be cut");
  return proto_error(path,
                     outline.is_damaged ? "is binary, but no HloProto"
                                        : "is a HloProto that cannot be parsed: it is damaged, or "
                                          "nests too deep",
                     kGiveOptimised);
}

/// Whether XLA still printed get-tuple-element when it wrote the proto. That began and ended with
/// no field of its own; comparisons have an order since the same releases.
bool is_before_compact_elements(const pb::HloModule& module) {
  bool compares = false;
  for (const pb::HloComputation& computation : module.computations())
    for (const pb::HloInstruction& in : computation.instructions()) {
      if (in.opcode() != "compare") continue;
      if (!in.comparison_order().empty()) return false;
      compares = true;
    }
  return compares;
}

/// What the reader of text found in the text that nobody has seen: without its position there.
Error without_place(Error error) {
  error.where.line.reset();
  error.where.column.reset();
  error.excerpt.clear();
  return error;
}

}  // namespace

bool looks_like_proto(std::string_view bytes, const std::string& path) {
  const auto is_control = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r' && c != '\f';
  };
  const std::string_view start = bytes.substr(0, 4096);
  if (std::ranges::none_of(start, is_control)) return false;
  return start.starts_with('\n') || path.find(".pb") != std::string::npos;
}

Result<Program> read_hlo_proto(std::shared_ptr<const std::string> bytes, const std::string& path) {
  // One piece of memory for all messages: to free them one by one takes longer than to parse them.
  google::protobuf::ArenaOptions options;
  options.start_block_size = std::clamp(bytes->size(), std::size_t{1} << 12, kArenaBlock);
  options.max_block_size = kArenaBlock;
  google::protobuf::Arena arena(options);
  pb::HloFile* const file = google::protobuf::Arena::CreateMessage<pb::HloFile>(&arena);
  if (auto unreadable = parse(*bytes, path, *file)) return *std::move(unreadable);
  ProtoText text = to_text(file->module(), bytes->size());
  if (!text.problem.empty())
    return proto_error(path, std::move(text.problem), "the file may be damaged");
  Result<Program> read =
      read_hlo_text(std::make_shared<const std::string>(std::move(text.text)), path);
  if (!read.ok()) return without_place(read.error());
  Program program = std::move(read).value();
  program.text = nullptr;
  program.has_explicit_elements = is_before_compact_elements(file->module());
  if (file->has_buffer_assignment()) {
    Result<XlaBufferAssignment> assignment = make_xla_assignment(*file, path);
    if (!assignment.ok()) return assignment.error();
    program.xla_assignment =
        std::make_shared<const XlaBufferAssignment>(std::move(assignment).value());
  }
  return program;
}

}  // namespace spillway::hlo
