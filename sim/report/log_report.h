// What `log` answers: what stands in a log, what each number means, and which one decides. Computed
// once, written down as text or JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/log/read_log.h"

namespace spillway {

/// A number of the log and what it means.
struct LogRow {
  log::LineNumber line = 0;
  std::string key;  ///< for scripts, with its unit: "requested_bytes"
  std::optional<log::LoggedBytes> bytes;
  std::optional<std::int64_t> count;
  std::string meaning;
};

struct LogPart {
  std::string kind;  ///< stable, for scripts: "out-of-memory"
  std::string title;
  log::LineNumber line = 0;
  std::size_t times = 1;
  bool cut = false;
  std::vector<LogRow> rows;
};

struct LogFinding {
  std::string code;      ///< stable, for scripts: "contiguous-block"
  bool decides = false;  ///< otherwise it is only good to know
  std::vector<log::LineNumber> lines;
  std::string message;
};

/// One quantity as several parts of the log give it.
struct LogComparison {
  struct Value {
    std::string source;
    log::LineNumber line = 0;
    log::LoggedBytes bytes;
  };
  std::string quantity;
  std::vector<Value> values;
  bool agree = true;
  std::string verdict;
};

/// Whether the program would fit a larger share of the card.
struct LogFraction {
  Bytes need;  ///< of the pool
  std::string need_origin;
  Bytes card;
  std::string card_origin;
  double smallest = 1;  ///< of the card that would do by sum, two decimals; above 1 none does
  /// The same where the request needs one piece and everything lies where it lay; absent when the
  /// log does not tell the largest free piece, or that was all that was free.
  std::optional<double> smallest_as_it_lay;
};

struct LogReport {
  std::string path;
  log::LineNumber lines = 0;
  std::vector<LogFinding> findings;  ///< those that decide first
  std::vector<LogPart> parts;        ///< in the order of the text
  std::vector<LogComparison> comparisons;
  std::optional<LogFraction> fraction;
  std::vector<std::string> notes;
};

/// What the user may add to a log.
struct LogWishes {
  std::optional<Bytes> hbm;  ///< of the card
  std::string hbm_origin;
};
LogReport make_log_report(const log::Log& log, const LogWishes& wishes);

/// For a person at a terminal.
std::string render_text(const LogReport& report);
/// Schema spillway.log/1.
std::string render_json(const LogReport& report);

}  // namespace spillway
