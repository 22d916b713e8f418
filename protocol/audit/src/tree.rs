//! The tree over all leaves of a round.
//!
//! A node above two others is the BLAKE3 hash of the 64 bytes of both. The n leaves of a tile, a power of two,
//! make a full tree; the roots of the tiles, in order, make the tree above, where a last node without a
//! neighbour goes up as it is. The shape follows from T and n alone, so a path has no positions in it.

use crate::message::{Cell, Node, PATH_MAX};
use protocol_pure::bounded::List;
use protocol_pure::verify::Parameters;

/// The node above two.
#[must_use]
pub fn parent(left: &Node, right: &Node) -> Node {
    let mut both = [0; 64];
    both[..32].copy_from_slice(&left.0);
    both[32..].copy_from_slice(&right.0);
    Node(*blake3::hash(&both).as_bytes())
}

/// The root above some nodes; of none, a node of zeros.
#[must_use]
pub fn root(nodes: &[Node]) -> Node {
    let mut level = nodes.to_vec();
    while level.len() > 1 {
        level = above(&level);
    }
    level.first().copied().unwrap_or(Node([0; 32]))
}

/// The path from leaf `row` among `leaves` of its tile, and on from root `tile` among `tile_roots`.
#[must_use]
pub fn path(leaves: &[Node], row: u32, tile_roots: &[Node], tile: u32) -> List<Node, PATH_MAX> {
    let mut path = siblings(leaves, row);
    path.extend(siblings(tile_roots, tile));
    List::first(path)
}

/// The root that `leaf` has at its cell with this path; nothing where the path is too short or too long.
#[must_use]
pub fn climb(leaf: Node, cell: Cell, parameters: &Parameters, path: &[Node]) -> Option<Node> {
    let mut path = path.iter();
    let tile_root = climb_one(leaf, cell.row, parameters.tile_side, &mut path)?;
    let root = climb_one(tile_root, cell.tile, parameters.tiles, &mut path)?;
    path.next().is_none().then_some(root)
}

fn above(level: &[Node]) -> Vec<Node> {
    level
        .chunks(2)
        .map(|pair| match pair {
            [left, right] => parent(left, right),
            alone => alone.first().copied().unwrap_or(Node([0; 32])),
        })
        .collect()
}

fn siblings(nodes: &[Node], at: u32) -> Vec<Node> {
    let mut at = usize::try_from(at).unwrap_or(usize::MAX);
    let mut level = nodes.to_vec();
    let mut siblings = Vec::new();
    while level.len() > 1 {
        siblings.extend(level.get(at ^ 1).copied());
        level = above(&level);
        at /= 2;
    }
    siblings
}

fn climb_one<'a>(
    mut node: Node,
    mut at: u32,
    mut count: u32,
    path: &mut impl Iterator<Item = &'a Node>,
) -> Option<Node> {
    if at >= count {
        return None;
    }
    while count > 1 {
        if at ^ 1 < count {
            let sibling = path.next()?;
            node = if at.is_multiple_of(2) {
                parent(&node, sibling)
            } else {
                parent(sibling, &node)
            };
        }
        at /= 2;
        count = count.div_ceil(2);
    }
    Some(node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::SMALL;

    fn node(number: u8) -> Node {
        Node([number; 32])
    }

    #[test]
    fn a_tree_of_three() {
        let nodes = [node(1), node(2), node(3)];
        let wanted = parent(&parent(&node(1), &node(2)), &node(3));
        assert_eq!(root(&nodes), wanted);
        let both = [[1_u8; 32], [2; 32]].concat();
        assert_eq!(
            parent(&node(1), &node(2)).0,
            *blake3::hash(&both).as_bytes()
        );
    }

    #[test]
    fn every_leaf_climbs_to_the_root_and_nowhere_else() {
        // Sixteen leaves in each tile; the tiles' tree with every shape of last nodes.
        for tiles in 1..=9 {
            let parameters = Parameters { tiles, ..SMALL };
            let leaf = |tile: u32, row: u32| node(u8::try_from(tile * 16 + row).unwrap());
            let leaves = |tile| (0..16).map(|row| leaf(tile, row)).collect::<Vec<_>>();
            let roots: Vec<Node> = (0..tiles).map(|tile| root(&leaves(tile))).collect();
            let top = root(&roots);
            for tile in 0..tiles {
                for row in 0..16 {
                    let cell = Cell {
                        round: 0,
                        tile,
                        row,
                    };
                    let way = path(&leaves(tile), row, &roots, tile);
                    let reached = |leaf, path: &[Node]| climb(leaf, cell, &parameters, path);
                    assert_eq!(reached(leaf(tile, row), &way), Some(top));
                    assert_ne!(reached(node(255), &way), Some(top));
                    assert_eq!(reached(leaf(tile, row), &way[1..]), None);
                    let longer: Vec<Node> = way.iter().copied().chain([node(0)]).collect();
                    assert_eq!(reached(leaf(tile, row), &longer), None);
                }
            }
            let outside = Cell {
                round: 0,
                tile: tiles,
                row: 0,
            };
            assert_eq!(climb(node(0), outside, &parameters, &[]), None);
        }
    }
}
