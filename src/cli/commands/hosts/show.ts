import { z } from 'zod';
import { getHost } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';

/** @spec docs/decisions.md "Host listing" */
export const show = defineCommand({
  name: 'hosts show',
  summary: 'Show one host',
  example: 'svc hosts show host_01b8dac5',
  args: z.object({ host: z.string().min(1).describe("the host's id") }),
  run: async ({ host }, { client }) => ok(await client.call(getHost, { params: { hostId: host } })),
});
