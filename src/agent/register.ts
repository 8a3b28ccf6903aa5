import { arch, hostname, platform, release } from 'node:os';
import { registerHost } from '../contracts/index.ts';
import { createClient } from '../http/client.ts';
import { version } from '../kit/files/paths.ts';
import { createHostKeys } from '../kit/security/host-proof.ts';
import { type AgentIdentity, writeIdentity } from './identity.ts';

export interface Registration {
  gateway: string;
  /** Enrolment token from `svc hosts invite`, or an administrator's token. */
  token: string;
  name: string;
  labels: Record<string, string>;
  capabilities: string[];
  home: string;
}

/** Creates a key pair, registers the public key and stores the identity. @spec Authentication 9 */
export async function registerAgent(registration: Registration): Promise<AgentIdentity & { file: string }> {
  const { token, name, labels, capabilities, home } = registration;
  const gateway = new URL(registration.gateway).origin;
  const keys = createHostKeys();
  const client = createClient({ url: gateway, peer: 'gateway' });
  const metadata = {
    hostname: hostname(),
    platform: platform(),
    arch: arch(),
    release: release(),
    agentVersion: version,
  };
  const body = { name, publicKey: keys.publicKey, capabilities, labels, metadata };
  const headers = { authorization: `Bearer ${token}` };
  const reply = await client.call(registerHost, { body }, { headers });
  const identity: AgentIdentity = { ...reply, gateway, name, capabilities, keys };
  return { ...identity, file: await writeIdentity(home, identity) };
}
