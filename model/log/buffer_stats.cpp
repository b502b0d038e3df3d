#include "model/log/buffer_stats.h"

namespace spillway::log {
namespace {

struct Label {
  std::string_view words;
  std::optional<LoggedBytes> BufferStats::*field;
};
constexpr Label kLabels[] = {
    {"parameter allocation:", &BufferStats::parameter},
    {"constant allocation:", &BufferStats::constant},
    {"maybe_live_out allocation:", &BufferStats::maybe_live_out},
    {"preallocated temp allocation:", &BufferStats::temp},
    {"preallocated temp fragmentation:", &BufferStats::temp_fragmentation},
    {"total allocation:", &BufferStats::total},
    {"total fragmentation:", &BufferStats::total_fragmentation},
};

/// So many lines of others may stand between two of a block; then it is over.
constexpr std::size_t kPatience = 12;

class Reader {
 public:
  void read(const Line& line) {
    if (line.text.find("BufferAssignment stats:") != std::string_view::npos) {
      begin(line);
      return;
    }
    if (read_label(line) || (open_ && read_peak(line))) {
      idle_ = 0;
    } else if (open_ && !trimmed(line.text).empty() && ++idle_ > kPatience) {
      end();
    }
  }
  std::vector<BufferStats> finish() {
    end();
    return std::move(found_);
  }

 private:
  void begin(const Line& line) {
    end();
    found_.push_back({});
    found_.back().line = line.number;
    open_ = true;
    idle_ = 0;
  }
  void end() {
    if (!open_) return;
    BufferStats& block = found_.back();
    block.cut = !block.total || buffer_.has_value();
    buffer_.reset();
    in_peak_ = open_ = false;
    if (!has_any(block)) found_.pop_back();
  }
  static bool has_any(const BufferStats& block) {
    for (const Label& label : kLabels)
      if (block.*label.field) return true;
    return false;
  }

  bool read_label(const Line& line) {
    for (const Label& label : kLabels) {
      auto rest = behind(line.text, label.words);
      if (!rest) continue;
      const auto bytes = take_bytes(*rest);
      if (!bytes) return false;
      if (!open_ || found_.back().*label.field) begin(line);
      found_.back().*label.field = *bytes;
      return true;
    }
    return false;
  }

  bool read_peak(const Line& line) {
    if (line.text.find("Peak buffers:") != std::string_view::npos) return in_peak_ = true;
    if (!in_peak_) return false;
    if (is_buffer_head(line.text)) {
      buffer_.emplace();
      buffer_->line = line.number;
      return true;
    }
    if (!buffer_) return false;
    if (line.text.find("=====") != std::string_view::npos) {
      if (has_size_) found_.back().peak.push_back(std::move(*buffer_));
      buffer_.reset();
      has_size_ = false;
      return true;
    }
    return read_buffer_field(line.text);
  }

  /// "Buffer 12:"
  static bool is_buffer_head(std::string_view text) {
    auto rest = behind(text, "Buffer ");
    return rest && take_integer(*rest) && trimmed(*rest) == ":";
  }

  bool read_buffer_field(std::string_view text) {
    if (auto operation = behind(text, "Operator: ")) {
      if (auto name = behind(*operation, "op_name=\""))
        buffer_->op_name = printable(name->substr(0, name->find('"')));
      return true;
    }
    if (auto label = behind(text, "XLA Label: ")) {
      buffer_->label = printable(trimmed(*label));
      return true;
    }
    if (auto shape = behind(text, "Entry Parameter Subshape: ")) {
      buffer_->shape = printable(trimmed(*shape));
      return buffer_->parameter = true;
    }
    if (auto shape = behind(text, "Shape: ")) {
      buffer_->shape = printable(trimmed(*shape));
      return true;
    }
    auto size = behind(text, "Size: ");
    if (!size) return false;
    const auto bytes = take_bytes(*size);
    if (!bytes) return false;
    buffer_->size = *bytes;
    return has_size_ = true;
  }

  std::vector<BufferStats> found_;
  std::optional<PeakBuffer> buffer_;
  bool open_ = false, in_peak_ = false, has_size_ = false;
  std::size_t idle_ = 0;
};

}  // namespace

std::vector<BufferStats> find_buffer_stats(const std::vector<Line>& lines) {
  Reader reader;
  for (const Line& line : lines) reader.read(line);
  return reader.finish();
}

}  // namespace spillway::log
