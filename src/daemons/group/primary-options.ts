import type { ServiceName } from '../../contracts/index.ts';
import type { PlatformError } from '../../kit/errors/errors.ts';
import type { Random } from '../../kit/security/random.ts';
import type { Logger } from '../../kit/telemetry/logger.ts';
import type { LineOutput } from '../../kit/telemetry/output.ts';
import type { Clock } from '../../kit/time/clock.ts';
import type { Peers } from '../peers.ts';
import type { DaemonStart } from '../process-protocol.ts';
import type { SiblingProgramOptions } from './sibling-program.ts';

export interface PrimaryOptions {
  name: ServiceName;
  size: number;
  /** Start parameters of a sibling, except its address. */
  describe: () => Omit<DaemonStart, 'listen' | 'sibling'>;
  peers: Peers;
  output: LineOutput;
  logger: Logger;
  clock: Clock;
  random: Random;
  /** Called when a sibling is in a crash loop: the service must exit with this error. */
  onGivenUp: (error: PlatformError) => void;
  /** Called with the sandbox of each plugin process that a sibling starts. */
  onSandbox?: SiblingProgramOptions['onSandbox'];
}
