import type { Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import {
  type AgentFrame,
  exchangeToken,
  type GatewayFrame,
  HOST_PROTOCOL,
  inviteHost,
  registerHost,
} from '../../src/contracts/index.ts';
import { createClient } from '../../src/http/index.ts';
import { answerChallenge, createHostKeys, type HostKeys } from '../../src/kit/security/host-proof.ts';

type Target = { url: string };

export interface RegisteredHost {
  hostId: string;
  clientId: string;
  clientSecret: string;
  namespaceId: string;
  keys: HostKeys;
  /** A fresh access token. */
  token(): Promise<string>;
}

/** Invites and registers a host the way a machine does. */
export async function registerTestHost(
  gateway: Target,
  adminToken: string,
  options: {
    namespaceId?: string;
    name?: string;
    labels?: Record<string, string>;
    capabilities?: string[];
  } = {},
): Promise<RegisteredHost> {
  const { namespaceId, name = 'machine', labels = {}, capabilities = [] } = options;
  const client = createClient({ url: gateway.url, peer: 'gateway' });
  const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
  const body = namespaceId ? { namespaceId: namespaceId as never } : {};
  const { token: enrolment } = await client.call(inviteHost, { body }, bearer(adminToken));
  const keys = createHostKeys();
  const host = await client.call(
    registerHost,
    { body: { name, publicKey: keys.publicKey, labels, capabilities } },
    bearer(enrolment),
  );
  const { clientId, clientSecret } = host;
  const token = async () =>
    (await client.call(exchangeToken, { body: { clientId, clientSecret } })).accessToken;
  return { ...host, keys, token };
}

type FrameOf<Type extends GatewayFrame['type']> = Extract<GatewayFrame, { type: Type }>;

/** An agent reduced to its frames, for saying what a real one would not. */
export interface RawAgent {
  socket: WebSocket;
  frames: GatewayFrame[];
  /** The next frame of that type that was not asked for yet. */
  next<Type extends GatewayFrame['type']>(type: Type): Promise<FrameOf<Type>>;
  send(frame: AgentFrame | Record<string, unknown> | string): void;
  /** Answers the challenge; resolves with the welcome. */
  hello(extra?: Record<string, unknown>): Promise<FrameOf<'welcome'>>;
  closed: Promise<{ code: number; reason: string }>;
}

/** `connection`: one that stands already, to a process that the test chose. */
export function connectRaw(
  gateway: Target,
  token: string,
  host?: RegisteredHost,
  connection?: Socket,
): RawAgent {
  const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/hosts/connect`, {
    headers: { authorization: `Bearer ${token}` },
    ...(connection ? { createConnection: () => connection } : {}),
  });
  onTestFinished(() => socket.terminate());
  const frames: GatewayFrame[] = [];
  const taken = new Set<GatewayFrame>();
  let wake = () => {};
  socket.on('message', (data) => {
    frames.push(JSON.parse(String(data)));
    wake();
  });
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on('error', () => {});
    socket.on('close', (code, reason) => {
      resolve({ code, reason: String(reason) });
      wake();
    });
  });
  const send: RawAgent['send'] = (frame) =>
    socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame));

  async function next<Type extends GatewayFrame['type']>(type: Type): Promise<FrameOf<Type>> {
    for (;;) {
      const found = frames.find((frame) => frame.type === type && !taken.has(frame));
      if (found) {
        taken.add(found);
        return found as FrameOf<Type>;
      }
      if (socket.readyState === WebSocket.CLOSED) throw new Error(`closed before a "${type}" frame came`);
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }
  return {
    socket,
    frames,
    next,
    send,
    closed,
    async hello(extra = {}) {
      const challenge = await next('challenge');
      const proof = host ? answerChallenge(challenge, host.keys, host.hostId) : undefined;
      send({ type: 'hello', protocol: HOST_PROTOCOL, agentVersion: '1', proof, ...extra });
      return next('welcome');
    },
  };
}

/** Registers and connects a host. */
export async function connectHost(
  gateway: Target,
  adminToken: string,
  options?: Parameters<typeof registerTestHost>[2],
): Promise<{ host: RegisteredHost; agent: RawAgent }> {
  const host = await registerTestHost(gateway, adminToken, options);
  const agent = connectRaw(gateway, await host.token(), host);
  await agent.hello();
  return { host, agent };
}

/** The status that an upgrade is refused with. */
export function refusedWith(agent: RawAgent): Promise<number> {
  return new Promise((resolve) => {
    agent.socket.on('unexpected-response', (request, response) => {
      request.destroy();
      resolve(response.statusCode!);
    });
  });
}
