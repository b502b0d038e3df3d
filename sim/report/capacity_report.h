// What `capacity` answers: for a person as text, Markdown and a web page, for others as CSV, SQLite
// and JSON. All of them write down the same figures (capacity_figures.h).
#pragma once

#include <string>
#include <string_view>

#include "sim/capacity/capacity.h"

namespace spillway {

/// Whether any cell fits.
bool fits_anywhere(const CapacityReport& report);

/// For a terminal. Of a large grid only the best batch of each row is shown, and it says so.
std::string render_text(const CapacityReport& report);
/// The same for a document.
std::string render_markdown(const CapacityReport& report);
/// One self-contained page: heat maps, answers, a table, what was assumed.
std::string render_html(const CapacityReport& report);
/// A line a cell, all cells, by RFC 4180; the names of the columns carry units. What a cell has
/// not is empty.
std::string render_csv(const CapacityReport& report);
/// A database file: tables `cells`, `machines`, `answers` and `assumptions`.
std::string render_sqlite(const CapacityReport& report);
/// Schema spillway.capacity/1. A part of a sharded run has no answers.
std::string render_json(const CapacityReport& report);

bool is_capacity_json(std::string_view text);
/// Reads what render_json wrote, so that parts put together can be written in every form; `path`
/// is for messages.
Result<CapacityReport> read_capacity_json(const std::string& json, const std::string& path);

}  // namespace spillway
