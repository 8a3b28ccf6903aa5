import { formatDuration } from '../../../kit/duration.ts';
import type { BrokenPlugin, SupervisorEvent, SupervisorStatus } from '../../supervisor/control-protocol.ts';
import type { Ui } from '../../ui.ts';

/** What happens to the services, a line each. */
export function announce(event: SupervisorEvent, { note, warn, err }: Ui): void {
  if (event.type === 'waiting') note(`${err.dim('…')} waiting: ${event.reason}`);
  else if (event.type === 'ready') {
    const took = err.dim(`ready after ${formatDuration(event.tookMs)}`);
    note(`${err.green('✓')} ${event.service.padEnd(11)} ${event.url}  ${took}`);
  } else if (event.type === 'crashed') {
    warn(`${event.service} ended (${event.reason}); it starts again in ${event.retryInMs}ms`);
  } else if (event.type === 'crash-loop') {
    const pause = formatDuration(event.retryInMs);
    warn(`${event.service} ended ${event.crashes} times in a row; it starts again in ${pause}.`);
    warn(`  ${event.reason}`);
    for (const line of event.lastLines) note(err.dim(`  | ${line}`));
    note(`  To start it at once: svc restart ${event.service}`);
  } else {
    const how = event.killed ? ' by force' : '';
    note(`${err.dim('■')} ${event.service} stopped${how}`);
  }
}

/** What is known once all services are ready. */
export interface Started {
  status: SupervisorStatus;
  firstStart: boolean;
  brokenPlugins: BrokenPlugin[];
}

/** Where it runs, and what does not; at the first start also what to do next. */
export function announceReady({ status, firstStart, brokenPlugins }: Started, { note, warn, err }: Ui): void {
  const gateway = status.services.find(({ name }) => name === 'gateway')?.url;
  note(`${err.bold('svc is running')} (profile ${status.profile}, data in ${status.dataDir}).`);
  for (const { id, message } of brokenPlugins) warn(`The plugin ${id} is left out: ${message}`);
  if (brokenPlugins.length > 0) note(`  svc plugins show ${brokenPlugins[0]?.id} lists every fault.`);
  if (!firstStart) return;
  note('');
  note("This first start made keys and the operator's credentials in that folder;");
  note('keep it private. What to do next:');
  note('  svc plugins create <name>                 a plugin of your own');
  note('  svc webhooks provision <plugin> <event>   make its secret');
  note(`  ${`open ${gateway}/docs-all`.padEnd(40)}  the API, with a browser`);
  note('  svc status, svc logs -f, svc down         look at it, follow it, stop it');
}
