#include "model/hlo/proto_attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "model/hlo/char_class.h"
#include "model/hlo/proto/hlo.pb.h"
#include "model/hlo/proto_groups.h"
#include "model/hlo/proto_values.h"
#include "model/program/opcode.h"

namespace spillway::hlo {
namespace {

constexpr int kMostSpatial = 10;  // each has a digit

/// Writes attributes behind one another.
class AttributeWriter {
 public:
  AttributeWriter(std::string& text, const pb::HloInstruction& instruction)
      : text_(text), in_(instruction), opcode_(find_opcode(in_.opcode())) {}

  void write() {
    write_dimensions();
    write_slices();
    write_window();
    write_products();
    write_gather();
    write_collective();
    write_custom_call();
    write_numbers();
    write_frontend();
    write_metadata();
  }

 private:
  void name(std::string_view key) {
    text_ += ", ";
    text_ += key;
    text_ += '=';
  }
  void word(std::string_view key, std::string_view value) {
    if (value.empty()) return;
    name(key);
    text_ += value;
  }
  void number(std::string_view key, std::int64_t value) { word(key, std::to_string(value)); }
  void flag(std::string_view key, bool value) { word(key, value ? "true" : ""); }
  template <typename Numbers>
  void braced(const Numbers& numbers) {
    text_ += '{';
    append_numbers(text_, numbers);
    text_ += '}';
  }
  template <typename Numbers>
  void list(std::string_view key, const Numbers& numbers, bool even_empty = false) {
    if (numbers.empty() && !even_empty) return;
    name(key);
    braced(numbers);
  }

  void write_dimensions();
  void write_slices();
  void write_window();
  void write_labels(const pb::ConvolutionDimensions& dimensions);
  void write_products();
  void write_dot(const pb::DotDimensions& dot);
  void write_precision();
  void write_gather();
  void write_collective();
  void write_custom_call();
  void write_numbers();
  void write_frontend();
  void write_metadata();

  std::string& text_;
  const pb::HloInstruction& in_;
  Opcode opcode_;
};

void AttributeWriter::write_dimensions() {
  if (opcode_ == Opcode::kIota && in_.dimensions_size() == 1)
    return number("iota_dimension", in_.dimensions(0));
  list("dimensions", in_.dimensions(),
       opcode_ == Opcode::kBroadcast || opcode_ == Opcode::kReduce ||
           opcode_ == Opcode::kTranspose || opcode_ == Opcode::kReverse);
}

void AttributeWriter::write_slices() {
  if (in_.slice_dimensions_size() > 0) {
    name("slice");
    const bool strided = std::ranges::any_of(
        in_.slice_dimensions(), [](const pb::SliceDimension& d) { return d.stride() != 1; });
    const char* before = "{";
    for (const pb::SliceDimension& d : in_.slice_dimensions()) {
      text_ += fmt::format("{}[{}:{}", before, d.start(), d.limit());
      if (strided) text_ += ':' + std::to_string(d.stride());
      text_ += ']';
      before = ", ";
    }
    text_ += '}';
  }
  list("dynamic_slice_sizes", in_.dynamic_slice_sizes());
  if (in_.padding().dimensions().empty()) return;
  name("padding");
  const bool interior = std::ranges::any_of(
      in_.padding().dimensions(), [](const pb::PaddingDimension& d) { return d.interior() != 0; });
  const char* before = "";
  for (const pb::PaddingDimension& d : in_.padding().dimensions()) {
    text_ += fmt::format("{}{}_{}", before, d.low(), d.high());
    if (interior) text_ += '_' + std::to_string(d.interior());
    before = "x";
  }
}

/// window={size=3x3 stride=2x2 pad=1_1x1_1 lhs_dilate=1x1 rhs_dilate=1x1 rhs_reversal=0x0}: what
/// says nothing is left out.
void AttributeWriter::write_window() {
  const auto& dimensions = in_.window().dimensions();
  if (!dimensions.empty()) {
    using Dimension = pb::WindowDimension;
    name("window");
    const auto part = [&](const char* key, std::string (*of)(const Dimension&),
                          bool (*says)(const Dimension&)) {
      if (std::ranges::none_of(dimensions, says)) return;
      text_ += key;
      const char* before = "";
      for (const Dimension& d : dimensions) {
        text_ += before + of(d);
        before = "x";
      }
    };
    text_ += '{';
    part(
        "size=", [](const Dimension& d) { return std::to_string(d.size()); },
        [](const Dimension&) { return true; });
    part(
        " stride=", [](const Dimension& d) { return std::to_string(d.stride()); },
        [](const Dimension& d) { return d.stride() != 1; });
    part(
        " pad=",
        [](const Dimension& d) { return fmt::format("{}_{}", d.padding_low(), d.padding_high()); },
        [](const Dimension& d) { return d.padding_low() != 0 || d.padding_high() != 0; });
    part(
        " lhs_dilate=", [](const Dimension& d) { return std::to_string(d.base_dilation()); },
        [](const Dimension& d) { return d.base_dilation() != 1; });
    part(
        " rhs_dilate=", [](const Dimension& d) { return std::to_string(d.window_dilation()); },
        [](const Dimension& d) { return d.window_dilation() != 1; });
    part(
        " rhs_reversal=",
        [](const Dimension& d) { return std::string(d.window_reversal() ? "1" : "0"); },
        [](const Dimension& d) { return d.window_reversal(); });
    text_ += '}';
  }
  if (in_.has_convolution_dimensions()) write_labels(in_.convolution_dimensions());
  if (in_.feature_group_count() > 1) number("feature_group_count", in_.feature_group_count());
  if (in_.batch_group_count() > 1) number("batch_group_count", in_.batch_group_count());
}

/// b01f_01io->b01f: what each dimension of input, kernel and output is.
void AttributeWriter::write_labels(const pb::ConvolutionDimensions& c) {
  using Named = std::pair<char, std::int64_t>;
  bool sound = true;
  const auto labels = [&sound](std::array<Named, 2> named, const auto& spatial) {
    sound &= spatial.size() <= kMostSpatial;
    std::string letters(named.size() + (sound ? static_cast<std::size_t>(spatial.size()) : 0), '?');
    const auto put = [&](std::int64_t at, char letter) {
      if (at < 0 || at >= static_cast<std::int64_t>(letters.size()))
        sound = false;
      else
        letters[static_cast<std::size_t>(at)] = letter;
    };
    for (const auto& [letter, at] : named) put(at, letter);
    for (int i = 0; i < spatial.size() && sound; ++i) put(spatial[i], static_cast<char>('0' + i));
    return letters;
  };
  std::string text =
      labels({Named{'b', c.input_batch()}, {'f', c.input_feature()}}, c.input_spatial());
  text += '_' + labels({Named{'i', c.kernel_input_feature()}, {'o', c.kernel_output_feature()}},
                       c.kernel_spatial());
  text +=
      "->" + labels({Named{'b', c.output_batch()}, {'f', c.output_feature()}}, c.output_spatial());
  if (sound) word("dim_labels", text);
}

void AttributeWriter::write_products() {
  if (in_.has_dot_dimensions()) write_dot(in_.dot_dimensions());
  if (in_.has_ragged_dot_dimensions()) {
    write_dot(in_.ragged_dot_dimensions().dot());
    list("lhs_ragged_dims", in_.ragged_dot_dimensions().lhs_ragged());
    list("rhs_group_dims", in_.ragged_dot_dimensions().rhs_group());
  }
  write_precision();
}

void AttributeWriter::write_dot(const pb::DotDimensions& dot) {
  list("lhs_batch_dims", dot.lhs_batch());
  list("lhs_contracting_dims", dot.lhs_contracting(), true);
  list("rhs_batch_dims", dot.rhs_batch());
  list("rhs_contracting_dims", dot.rhs_contracting(), true);
}

void AttributeWriter::write_precision() {
  constexpr std::string_view kPrecisions[] = {"default", "high", "highest", "packed_nibble"};
  constexpr std::string_view kAlgorithms[] = {"",
                                              "dot_any_f8_any_f8_f32",
                                              "dot_any_f8_any_f8_f32_fast_accum",
                                              "dot_f16_f16_f16",
                                              "dot_f16_f16_f32",
                                              "dot_bf16_bf16_bf16",
                                              "dot_bf16_bf16_f32",
                                              "dot_bf16_bf16_f32_x3",
                                              "dot_bf16_bf16_f32_x6",
                                              "dot_tf32_tf32_f32",
                                              "dot_tf32_tf32_f32_x3",
                                              "dot_f32_f32_f32",
                                              "dot_f64_f64_f64",
                                              "dot_bf16_bf16_f32_x9"};
  const pb::Precision& precision = in_.precision();
  if (std::ranges::any_of(precision.operands(), [](int p) { return p != 0; })) {
    name("operand_precision");
    const char* before = "{";
    for (const int p : precision.operands()) {
      text_ += before;
      const auto at = static_cast<std::size_t>(p);
      text_ += at < std::size(kPrecisions) ? kPrecisions[at] : "unknown";
      before = ",";
    }
    text_ += '}';
  }
  const auto algorithm = static_cast<std::size_t>(precision.algorithm());
  word("algorithm", algorithm < std::size(kAlgorithms) ? kAlgorithms[algorithm] : "unknown");
}

void AttributeWriter::write_gather() {
  if (in_.has_gather_dimensions()) {
    const pb::GatherDimensions& g = in_.gather_dimensions();
    list("offset_dims", g.offset(), true);
    list("collapsed_slice_dims", g.collapsed_slice(), true);
    list("start_index_map", g.start_index_map(), true);
    list("operand_batching_dims", g.operand_batching());
    list("start_indices_batching_dims", g.start_indices_batching());
    number("index_vector_dim", g.index_vector());
    list("slice_sizes", in_.gather_slice_sizes(), true);
  }
  if (in_.has_scatter_dimensions()) {
    const pb::ScatterDimensions& s = in_.scatter_dimensions();
    list("update_window_dims", s.update_window(), true);
    list("inserted_window_dims", s.inserted_window(), true);
    list("scatter_dims_to_operand_dims", s.scatter_to_operand(), true);
    list("input_batching_dims", s.input_batching());
    list("scatter_indices_batching_dims", s.scatter_indices_batching());
    number("index_vector_dim", s.index_vector());
  }
}

void AttributeWriter::write_collective() {
  if (in_.channel_id() > 0) number("channel_id", in_.channel_id());
  append_replica_groups(text_, in_);
  if (in_.source_target_pairs_size() > 0) {
    name("source_target_pairs");
    const char* before = "{";
    for (const pb::SourceTarget& pair : in_.source_target_pairs()) {
      text_ += fmt::format("{}{{{},{}}}", before, pair.source(), pair.target());
      before = ",";
    }
    text_ += '}';
  }
  flag("use_global_device_ids", in_.use_global_device_ids());
  flag("is_host_transfer", in_.is_host_transfer());
}

void AttributeWriter::write_custom_call() {
  if (opcode_ == Opcode::kCustomCall) {
    name("custom_call_target");
    append_quoted(text_, in_.custom_call_target());
    if (in_.constrain_layout()) {
      name("operand_layout_constraints");
      const char* before = "{";
      for (const pb::Shape& shape : in_.operand_shapes()) {
        text_ += before;
        append_shape(text_, shape);
        before = ", ";
      }
      text_ += in_.operand_shapes().empty() ? "{}" : "}";
    }
    flag("custom_call_has_side_effect", in_.custom_call_has_side_effect());
    constexpr std::string_view kSchedules[] = {"", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"};
    if (const auto at = static_cast<std::size_t>(in_.custom_call_schedule());
        at < std::size(kSchedules))
      word("schedule", kSchedules[at]);
    constexpr std::string_view kVersions[] = {"", "", "API_VERSION_STATUS_RETURNING",
                                              "API_VERSION_STATUS_RETURNING_UNIFIED",
                                              "API_VERSION_TYPED_FFI"};
    if (const auto at = static_cast<std::size_t>(in_.custom_call_api_version());
        at < std::size(kVersions))
      word("api_version", kVersions[at]);
  } else {
    flag("constrain_layout", in_.constrain_layout());
  }
  if (in_.output_operand_aliasing_size() > 0) {
    name("output_to_operand_aliasing");
    const char* before = "{";
    for (const pb::OperandAliasing& alias : in_.output_operand_aliasing()) {
      text_ += before;
      braced(alias.output_path());
      text_ += fmt::format(": ({}, ", alias.operand());
      braced(alias.operand_path());
      text_ += ')';
      before = ", ";
    }
    text_ += '}';
  }
}

void AttributeWriter::write_numbers() {
  const auto safe_word = [this](std::string_view key, const std::string& value) {
    const auto is_plain = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    if (std::ranges::all_of(value, is_plain)) word(key, value);
  };
  safe_word("kind", in_.fusion_kind());
  safe_word("direction", in_.comparison_direction());
  if (in_.comparison_type() == "TOTALORDER") word("type", "TOTALORDER");  // not the type's own
  if (opcode_ == Opcode::kReducePrecision) {
    number("exponent_bits", in_.exponent_bits());
    number("mantissa_bits", in_.mantissa_bits());
  }
  if (opcode_ == Opcode::kFft) {
    constexpr std::string_view kTypes[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
    if (const auto at = static_cast<std::size_t>(in_.fft_type()); at < std::size(kTypes))
      word("fft_type", kTypes[at]);
    list("fft_length", in_.fft_length(), true);
  }
  if (in_.k() > 0) number("k", in_.k());
  if (opcode_ == Opcode::kGetTupleElement) number("index", in_.tuple_index());
  flag("is_stable", in_.is_stable());
  if (!in_.async_execution_thread().empty() && in_.async_execution_thread() != "main") {
    name("async_execution_thread");
    append_quoted(text_, in_.async_execution_thread());
  }
}

/// frontend_attributes={a="x",b={"n":1}}, by key.
void AttributeWriter::write_frontend() {
  if (in_.frontend_attributes().map().empty()) return;
  std::vector<std::pair<std::string_view, std::string_view>> sorted;
  for (const pb::FrontendAttribute& attribute : in_.frontend_attributes().map())
    sorted.emplace_back(attribute.key(), attribute.value());
  std::ranges::sort(sorted);
  name("frontend_attributes");
  const char* before = "{";
  for (const auto& [key, value] : sorted) {
    text_ += before;
    for (const char c : key) text_ += is(c, kName) ? c : '_';
    text_ += '=';
    append_json_or_quoted(text_, value);
    before = ",";
  }
  text_ += '}';
}

void AttributeWriter::write_metadata() {
  const pb::Metadata& m = in_.metadata();
  const char* before = ", metadata={";
  const auto next = [&](std::string_view key) {
    text_ += std::exchange(before, " ");
    text_ += key;
    text_ += '=';
  };
  const auto text = [&](std::string_view key, const std::string& value) {
    if (value.empty()) return;
    next(key);
    append_quoted(text_, value);
  };
  const auto count = [&](std::string_view key, std::int64_t value) {
    if (value == 0) return;
    next(key);
    text_ += std::to_string(value);
  };
  text("op_type", m.op_type());
  text("op_name", m.op_name());
  text("source_file", m.source_file());
  count("source_line", m.source_line());
  text("deduplicated_name", m.deduplicated_name());
  text("scheduling_name", m.scheduling_name());
  count("stack_frame_id", m.stack_frame_id());
  if (*before == ' ') text_ += '}';
}

}  // namespace

void append_attributes(std::string& text, const pb::HloInstruction& instruction) {
  AttributeWriter(text, instruction).write();
}

}  // namespace spillway::hlo
