/**
 * Result of a lookup: the matching route, or the methods that other routes accept at the same path. An unknown path has
 * no methods.
 */
export type PathMatch<Target> =
  | { found: true; target: Target; params: Record<string, string>; pattern: string }
  | { found: false; allowed: string[] };

export interface PathMatcher<Target> {
  /**
   * Adds a pattern such as `/a/:id`. Returns false and adds nothing if an existing pattern matches the same requests.
   */
  add(method: string, pattern: string, target: Target): boolean;
  find(method: string, rawPath: string): PathMatch<Target>;
}

interface Node<Target> {
  words: Map<string, Node<Target>>;
  parameter: Node<Target> | undefined;
  leaf: { target: Target; names: string[]; pattern: string } | undefined;
}

const node = <Target>(): Node<Target> => ({ words: new Map(), parameter: undefined, leaf: undefined });

function childOf<Target>(children: Map<string, Node<Target>>, name: string): Node<Target> {
  const found = children.get(name) ?? node<Target>();
  children.set(name, found);
  return found;
}

/**
 * Finds routes by method and path. Routes can change while the server listens, unlike in Fastify's router. Equivalent
 * percent-encodings match the same route. Literals take precedence over parameters.
 */
export function createPathMatcher<Target>(): PathMatcher<Target> {
  const trees = new Map<string, Node<Target>>();

  return {
    add(method, pattern, target) {
      const names: string[] = [];
      let at = childOf(trees, method);
      for (const part of pattern.split('/')) {
        if (part.startsWith(':')) {
          names.push(part.slice(1));
          at = at.parameter ??= node();
        } else {
          at = childOf(at.words, decodeSegment(part) ?? part);
        }
      }
      if (at.leaf) return false;
      at.leaf = { target, names, pattern };
      return true;
    },
    find(method, rawPath) {
      const segments = rawPath.split('/').map(decodeSegment);
      if (segments.some((segment) => segment === undefined)) return { found: false, allowed: [] };
      const path = segments as string[];
      const tree = trees.get(method);
      const values: string[] = [];
      const leaf = tree && descend(tree, path, 0, values);
      if (leaf) {
        const params = Object.fromEntries(leaf.names.map((name, index) => [name, values[index]!]));
        return { found: true, target: leaf.target, params, pattern: leaf.pattern };
      }
      const allowed = [...trees].filter(([, other]) => descend(other, path, 0, [])).map(([name]) => name);
      return { found: false, allowed: allowed.sort() };
    },
  };
}

/** Returns the leaf that matches the segments from `index` on. Adds parameter values to `values`. */
function descend<Target>(
  at: Node<Target>,
  segments: readonly string[],
  index: number,
  values: string[],
): Node<Target>['leaf'] {
  if (index === segments.length) return at.leaf;
  const segment = segments[index]!;
  const word = at.words.get(segment);
  const found = word && descend(word, segments, index + 1, values);
  if (found || !at.parameter || segment === '') return found;
  const depth = values.push(segment);
  const leaf = descend(at.parameter, segments, index + 1, values);
  // Removes the values of a failed branch before the next branch is tried.
  if (!leaf) values.length = depth - 1;
  return leaf;
}

function decodeSegment(segment: string): string | undefined {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
