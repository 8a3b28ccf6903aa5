import { readFileSync } from 'node:fs';
import { startBenchGateway } from './bench-gateway.ts';
import { threadCpuMs } from './event-loop.ts';

/**
 * A single gateway that may be killed at any time: `gateway-process.ts <folder> <port> <token>`. When ready, prints the CPU
 * time of the process and its main thread in ms: `ready <process> <thread>`.
 */
const [folder, port, token] = process.argv.slice(2) as [string, string, string];

const config = JSON.parse(readFileSync(`${folder}/svc.config.json`, 'utf8')) as object;
await startBenchGateway({ folder, config, token, port: Number(port) });
const { user, system } = process.cpuUsage();
process.stdout.write(`ready ${Math.round((user + system) / 1000)} ${Math.round(threadCpuMs())}\n`);
