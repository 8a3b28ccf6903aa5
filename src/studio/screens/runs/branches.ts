/** Calls of `ctx.all` in one branch of a job. */
interface Branch {
  /** The last steps of the branch. Those before it, while it has none. */
  last: readonly string[];
  /** The call in progress: its number, and its branches. */
  call: { number: string; branches: Map<string, Branch> } | undefined;
}

/**
 * Follows the steps of a job in their order, and tells what each of them follows: the step before it in its branch, or
 * all branches of a call of `ctx.all` that ended before it. @spec docs/workflows.md "Workflows in code"
 */
export class Branches {
  readonly #main: Branch;

  /** `first` is the node that the first steps follow. */
  constructor(first: string) {
    this.#main = { last: [first], call: undefined };
  }

  /** Adds a step and returns the nodes that it follows. `path` is its branch, such as `1-0.2-1`. */
  add(node: string, path: string): readonly string[] {
    const branch = this.#branchOf(path);
    const before = endsOf(branch);
    branch.last = [node];
    branch.call = undefined;
    return before;
  }

  /** Returns the last steps of the job. */
  ends(): readonly string[] {
    return endsOf(this.#main);
  }

  #branchOf(path: string): Branch {
    let branch = this.#main;
    for (const part of path === '' ? [] : path.split('.')) {
      const number = part.split('-')[0]!;
      if (branch.call?.number !== number) {
        branch.last = endsOf(branch);
        branch.call = { number, branches: new Map() };
      }
      const { branches } = branch.call;
      const inner = branches.get(part) ?? { last: branch.last, call: undefined };
      branches.set(part, inner);
      branch = inner;
    }
    return branch;
  }
}

function endsOf({ last, call }: Branch): readonly string[] {
  return call ? [...new Set([...call.branches.values()].flatMap(endsOf))] : last;
}
