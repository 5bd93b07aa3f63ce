#include "server/store/writer.h"

#include "server/store/packed.h"

namespace sublet::server {
namespace {

std::vector<Type> types_of(const Table& table) {
  std::vector<Type> types;
  for (const Column& column : table.columns())
    if (column.type != Type::kNumbered) types.push_back(column.type);
  return types;
}

}  // namespace

Bulk::Bulk(std::string statement, std::vector<Type> types)
    : parameters_(types.size()), text_(std::move(statement)), types_(std::move(types)) {}

Bulk::Bulk(const Table& table) : Bulk(upsert(table), types_of(table)) {}

void Bulk::add_row(const Table& table, const void* row) {
  auto values = parameters_.begin();
  for (const Column& column : table.columns()) {
    if (column.type == Type::kNumbered) continue;
    if (column.type == Type::kPacked)
      (values++)->texts.push_back(pack(table, row));
    else
      column.put(row, *values++);
  }
  ++rows_;
}

void Bulk::flush(soci::session& session) {
  if (rows_ == 0) return;
  if (!statement_) prepare(session);
  statement_->execute(true);
  clear();
}

void Bulk::clear() {
  rows_ = 0;
  for (Values& values : parameters_) {
    values.integers.clear();
    values.reals.clear();
    values.texts.clear();
  }
}

void Bulk::prepare(soci::session& session) {
  statement_ = std::make_unique<soci::statement>(session);
  for (size_t i = 0; i < types_.size(); ++i) {
    if (types_[i] == Type::kText || types_[i] == Type::kPacked) {
      statement_->exchange(soci::use(parameters_[i].texts));
    } else if (types_[i] == Type::kReal) {
      statement_->exchange(soci::use(parameters_[i].reals));
    } else {
      statement_->exchange(soci::use(parameters_[i].integers));
    }
  }
  statement_->alloc();
  statement_->prepare(text_);
  statement_->define_and_bind();
}

}  // namespace sublet::server
