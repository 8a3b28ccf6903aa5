import { createSecretKey } from 'node:crypto';
import { SignJWT } from 'jose';
import { gateway } from '../../../../src/daemons/gateway/index.ts';
import type { GatewayServices } from '../../../../src/daemons/gateway/services.ts';
import { createPeers } from '../../../../src/daemons/peers.ts';
import { type ManualClock, manualClock } from '../../../../src/kit/time/clock.ts';
import {
  startTestDaemon,
  TEST_KEYS,
  type TestDaemon,
  type TestDaemonOptions,
} from '../../../support/daemon.ts';
import { type EchoUpstream, startUpstream } from './echo-upstream.ts';

/** The static token that `startGateway` configures, for host `ci` of namespace `acme`. */
export const CI_TOKEN = 'a-static-token-of-ci';
export const CI_HEADERS = { authorization: `Bearer ${CI_TOKEN}` };

export interface TestGateway extends TestDaemon<GatewayServices> {
  upstream: EchoUpstream;
}

/** A real gateway before an echo server that stands for both upstreams. */
export async function startGateway(
  options: TestDaemonOptions & { upstream?: EchoUpstream; gateway?: Record<string, unknown> } = {},
): Promise<TestGateway> {
  const upstream = options.upstream ?? (await startUpstream());
  const daemon = await startTestDaemon(gateway, {
    peers: createPeers({ rest: upstream.url, workflow: upstream.url }),
    ...options,
    config: {
      ...options.config,
      gateway: { staticTokens: { [CI_TOKEN]: { hostId: 'ci', namespaceId: 'acme' } }, ...options.gateway },
    },
  });
  return { ...daemon, upstream };
}

/** Signs a JWT as we would, or as an attacker would. Times in seconds from `clock`'s now. */
export async function signJwt(
  claims: Record<string, unknown>,
  options: {
    clock?: ManualClock;
    secret?: string;
    expiresIn?: number | null;
    header?: Record<string, unknown>;
  } = {},
): Promise<string> {
  const now = Math.floor((options.clock ?? manualClock()).now() / 1000);
  const { expiresIn = 3600 } = options;
  return new SignJWT({
    hostId: 'host-1',
    namespaceId: 'acme',
    typ: 'access',
    iat: now,
    ...(expiresIn === null ? {} : { exp: now + expiresIn }),
    ...claims,
  })
    .setProtectedHeader({ alg: 'HS256', ...options.header })
    .sign(createSecretKey(Buffer.from(options.secret ?? TEST_KEYS.jwtSecret!)));
}
