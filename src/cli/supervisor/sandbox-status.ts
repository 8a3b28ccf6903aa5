import { messageOf } from '../../kit/errors.ts';
import { sandboxInForce } from '../../plugins/sandbox/index.ts';
import type { SandboxPreference } from '../../plugins/sandbox/launch.ts';
import type { SandboxStatus } from './control-protocol.ts';

/** What confines plugin code here; `unavailable` when the config demands a sandbox that does not work. */
export async function sandboxStatus(preference: SandboxPreference): Promise<SandboxStatus> {
  try {
    return await sandboxInForce(preference);
  } catch (error) {
    return { mode: 'unavailable', networkGuarded: false, reason: messageOf(error) };
  }
}
