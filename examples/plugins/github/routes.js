import { defineRoute, fail, ok } from 'svc-platform/sdk';
import { listCounts, readCounts } from './counts.js';
import { isRepositoryName } from './payload.js';

export const listRepositories = defineRoute({
  method: 'GET',
  execute: async (ctx, query) => ok(await listCounts(ctx.state, query)),
});

export const getRepository = defineRoute({
  method: 'GET',
  async execute(ctx) {
    const name = `${ctx.params.owner}/${ctx.params.name}`;
    const found = isRepositoryName(name) ? await readCounts(ctx.state, name) : undefined;
    return found
      ? ok(found)
      : fail('REPOSITORY_NOT_SEEN', `No delivery named ${name} yet.`, { repository: name });
  },
});
