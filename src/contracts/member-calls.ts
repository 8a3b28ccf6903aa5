import { z } from 'zod';
import { type Endpoint, endpoint } from './endpoint.ts';
import {
  beginCodeReplay,
  enterCodeStep,
  recallCodeSteps,
  settleCodeStep,
  watchCodeSteps,
} from './workflow-code.ts';
import { readRunNotices } from './workflow-notices.ts';

/** Calls of one workflow service to another one that executes a run. */
export const OWNER_ENDPOINTS: readonly Endpoint[] = [
  readRunNotices,
  beginCodeReplay,
  recallCodeSteps,
  enterCodeStep,
  settleCodeStep,
  watchCodeSteps,
];

/** Path prefix at which a gateway passes calls to the member of its node with this fence token. */
export const memberPath = (fence: number): string => `/internal/members/${fence}`;

/**
 * Returns the endpoint of a gateway that passes calls to a workflow service of its own node. Other nodes cannot connect
 * to a service that listens on loopback. @spec docs/decisions/0224
 */
export function throughGateway({ path, body, reply, errors = [], ...rest }: Endpoint) {
  return endpoint({
    ...rest,
    path: `/internal/members/:fence${path}`,
    params: z.object({ fence: z.coerce.number().int().positive() }),
    body: body ?? z.undefined(),
    reply,
    errors: [...errors, 'FORBIDDEN', 'NOT_FOUND', 'UPSTREAM_UNAVAILABLE'],
  });
}
