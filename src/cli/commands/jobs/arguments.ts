import { JobId } from '../../../contracts/index.ts';

export const JobArg = JobId.describe('job id');
