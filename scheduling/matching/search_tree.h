// A sorted line whose first member with some property is found without a linear search: each
// subtree knows a bound of its members' amounts, by which it is passed over. It is a treap whose
// ranks nobody can foresee: who chooses the order of the members could make a chain of it.
//
// Intrusive: the links are in the members, which the tree does not own, and whose order and
// bound may not change while they are in it, but for `refresh`. What is found does not depend on
// the tree's shape, which is another one in each process.
//
// Traits:
//   Node, Bound
//   static TreeLinks<Node, Bound>& links(Node&)    also for const
//   static bool before(const Node&, const Node&)   a strict order
//   static uint64_t id(const Node&)                different for different members
//   static Bound bound(const Node&)                of one member
//   static Bound join(const Bound&, const Bound&)  of both
#ifndef SUBLET_SCHEDULING_MATCHING_SEARCH_TREE_H_
#define SUBLET_SCHEDULING_MATCHING_SEARCH_TREE_H_

#include <cstddef>
#include <cstdint>

namespace sublet::scheduling {

template <typename Node, typename Bound>
struct TreeLinks {
  Node* left = nullptr;
  Node* right = nullptr;
  Bound bound{};  // of this member and all below it
};

// A member's rank in this process.
uint64_t tree_rank(uint64_t id);

template <typename Traits>
class SearchTree {
 public:
  using Node = typename Traits::Node;
  using Bound = typename Traits::Bound;

  bool empty() const { return root_ == nullptr; }
  // Of all members; only when not empty.
  const Bound& bound() const { return Traits::links(*root_).bound; }
  // Null: it is empty.
  Node* front() const {
    Node* node = root_;
    while (node != nullptr && left(*node) != nullptr) node = left(*node);
    return node;
  }

  // The node is in no tree.
  void add(Node& node) { insert(root_, node); }
  // The node is in this tree.
  void take(Node& node) {
    erase(root_, node);
    Traits::links(node).left = Traits::links(node).right = nullptr;
  }
  // It is empty from now on.
  void clear() { root_ = nullptr; }
  // The node's own bound has changed.
  void refresh(Node& node) { refresh_path(root_, node); }
  // The first member that `is` so. May be so: a subtree whose bound `may`.
  template <typename May, typename Is>
  Node* first(May may, Is is) const {
    return find(root_, may, is);
  }
  // The same among the members that are `behind` some point: all that follow one of them are, too.
  template <typename Behind, typename May, typename Is>
  Node* first_behind(Behind behind, May may, Is is) const {
    return find_behind(root_, behind, may, is);
  }
  // The same among all but the first `skipped` members. Only if the bound counts the `members`.
  template <typename May, typename Is>
  Node* first_after(uint64_t skipped, May may, Is is) const {
    return find_after(root_, skipped, may, is);
  }
  // In order, of the subtrees whose bound `may`, until `visit` returns false. False: it did.
  template <typename May, typename Visit>
  bool walk(May may, Visit visit) const {
    return walk_below(root_, may, visit);
  }

 private:
  static uint64_t rank(const Node& node) { return tree_rank(Traits::id(node)); }
  static Node*& left(Node& node) { return Traits::links(node).left; }
  static Node*& right(Node& node) { return Traits::links(node).right; }

  static void update(Node& node) {
    Bound bound = Traits::bound(node);
    for (Node* below : {left(node), right(node)})
      if (below != nullptr) bound = Traits::join(bound, Traits::links(*below).bound);
    Traits::links(node).bound = bound;
  }

  // Splits the tree into the members before `at` and those after it.
  static void split(Node* top, const Node& at, Node*& before, Node*& after) {
    if (top == nullptr) {
      before = after = nullptr;
      return;
    }
    if (Traits::before(*top, at)) {
      before = top;
      split(right(*top), at, right(*before), after);
    } else {
      after = top;
      split(left(*top), at, before, left(*after));
    }
    update(*top);
  }

  // All of `a` comes before all of `b`.
  static Node* merge(Node* a, Node* b) {
    if (a == nullptr) return b;
    if (b == nullptr) return a;
    if (rank(*a) > rank(*b)) {
      right(*a) = merge(right(*a), b);
      update(*a);
      return a;
    }
    left(*b) = merge(a, left(*b));
    update(*b);
    return b;
  }

  static void insert(Node*& top, Node& node) {
    if (top == nullptr || rank(node) > rank(*top)) {
      split(top, node, left(node), right(node));
      top = &node;
    } else {
      insert(Traits::before(node, *top) ? left(*top) : right(*top), node);
    }
    update(*top);
  }

  static void erase(Node*& top, Node& node) {
    if (top == &node) {
      top = merge(left(node), right(node));
      return;
    }
    erase(Traits::before(node, *top) ? left(*top) : right(*top), node);
    update(*top);
  }

  static void refresh_path(Node* top, Node& node) {
    if (top != &node) refresh_path(Traits::before(node, *top) ? left(*top) : right(*top), node);
    update(*top);
  }

  template <typename May, typename Is>
  static Node* find(Node* top, May& may, Is& is) {
    if (top == nullptr || !may(Traits::links(*top).bound)) return nullptr;
    if (Node* found = find(left(*top), may, is)) return found;
    return is(*top) ? top : find(right(*top), may, is);
  }

  template <typename Behind, typename May, typename Is>
  static Node* find_behind(Node* top, Behind& behind, May& may, Is& is) {
    if (top == nullptr || !may(Traits::links(*top).bound)) return nullptr;
    if (!behind(*top)) return find_behind(right(*top), behind, may, is);
    if (Node* found = find_behind(left(*top), behind, may, is)) return found;
    return is(*top) ? top : find(right(*top), may, is);
  }

  template <typename May, typename Is>
  static Node* find_after(Node* top, uint64_t skipped, May& may, Is& is) {
    if (skipped == 0) return find(top, may, is);
    if (top == nullptr || !may(Traits::links(*top).bound)) return nullptr;
    Node* before = left(*top);
    const uint64_t earlier = before == nullptr ? 0 : Traits::links(*before).bound.members;
    if (skipped > earlier) return find_after(right(*top), skipped - earlier - 1, may, is);
    if (Node* found = find_after(before, skipped, may, is)) return found;
    return is(*top) ? top : find(right(*top), may, is);
  }

  template <typename May, typename Visit>
  static bool walk_below(Node* top, May& may, Visit& visit) {
    return top == nullptr || !may(Traits::links(*top).bound) ||
           (walk_below(left(*top), may, visit) && visit(*top) &&
            walk_below(right(*top), may, visit));
  }

  Node* root_ = nullptr;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_MATCHING_SEARCH_TREE_H_
