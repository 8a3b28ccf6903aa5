import { HOST_CLOSE } from '../../../../contracts/index.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';

export interface SessionReports {
  connected(host: { name: string; namespaceId: string; agentVersion: string }): void;
  /** Records that the gateway closed the socket. `wasOpen` is true if the agent had been authenticated. */
  closed(code: number, reason: string, wasOpen: boolean): void;
  connectionLost(): void;
  /** Logs only the first unknown frame, so that a newer agent does not fill the log. */
  unknownFrame(type: string): void;
  notAuthenticated(error: unknown): void;
  notWritten(error: unknown): void;
}

export function createSessionReports(
  logger: Logger,
  ids: { hostId: string; sessionId: string },
): SessionReports {
  const { hostId } = ids;
  let reportedUnknown = false;
  return {
    connected: ({ name, namespaceId, agentVersion }) =>
      logger.diagnostic({
        domain: 'hosts',
        event: 'host.connected',
        level: 'info',
        reasonCode: 'CONNECTED',
        message: `Host "${name}" (${hostId}) is connected`,
        outcome: 'succeeded',
        evidence: { ...ids, namespaceId, agentVersion },
      }),
    closed: (code, reason, wasOpen) =>
      logger.diagnostic({
        domain: 'hosts',
        event: wasOpen ? 'host.disconnected' : 'host.refused',
        level: code === HOST_CLOSE.goingAway ? 'info' : 'warn',
        reasonCode: String(code),
        message: `The socket of host ${hostId} is closed: ${reason}`,
        outcome: wasOpen ? 'succeeded' : 'refused',
        evidence: { ...ids, code },
      }),
    connectionLost: () =>
      logger.diagnostic({
        domain: 'hosts',
        event: 'host.disconnected',
        level: 'info',
        reasonCode: 'CONNECTION_LOST',
        message: `Host ${hostId} is disconnected`,
        outcome: 'succeeded',
        evidence: ids,
      }),
    unknownFrame(type) {
      if (reportedUnknown) return;
      reportedUnknown = true;
      logger.diagnostic({
        domain: 'hosts',
        event: 'host.unknown_frame',
        level: 'warn',
        reasonCode: 'UNKNOWN_FRAME',
        message: `Host ${hostId} sends frames of the unknown type "${type}", which are ignored`,
        outcome: 'degraded',
        evidence: { ...ids, type },
      });
    },
    notAuthenticated: (error) => logger.error(`Host ${hostId} could not be authenticated`, { error }),
    notWritten: (error) => logger.warn(`The state of host ${hostId} could not be written`, { error }),
  };
}
