const NAMES = 'repository/';
const COUNTS = 'count/';

/** GitHub does not tell Octocat/Hello-World from octocat/hello-world, so neither do our keys. */
const keyOf = (repository) => repository.toLowerCase();

/**
 * Adds to the counters of a repository and returns their new values. Each increment is atomic, so
 * deliveries that arrive together are all counted.
 */
export async function addCounts(state, repository, increments) {
  const key = keyOf(repository);
  const [, ...totals] = await Promise.all([
    state.set(`${NAMES}${key}`, repository),
    ...Object.entries(increments).map(async ([counter, by]) => [
      counter,
      await state.increment(`${COUNTS}${key}/${counter}`, by),
    ]),
  ]);
  return Object.fromEntries(totals);
}

/** `{repository, counts}`, or undefined when nothing was heard of it. */
export async function readCounts(state, repository) {
  const name = await state.get(`${NAMES}${keyOf(repository)}`);
  if (name === undefined) return undefined;
  return { repository: name, counts: await countsOf(state, name) };
}

/** Repositories in the order of their names, a page at a time. */
export async function listCounts(state, { limit = 20, cursor } = {}) {
  const page = await state.list({ prefix: NAMES, limit, ...(cursor ? { cursor } : {}) });
  const items = await Promise.all(
    page.items.map(async ({ value }) => ({ repository: value, counts: await countsOf(state, value) })),
  );
  return { items, nextCursor: page.nextCursor };
}

async function countsOf(state, repository) {
  const prefix = `${COUNTS}${keyOf(repository)}/`;
  const { items } = await state.list({ prefix, limit: 1000 });
  return Object.fromEntries(items.map(({ key, value }) => [key.slice(prefix.length), value]));
}
