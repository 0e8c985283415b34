suppressMessages({library(lmerTest); library(metafor); library(jsonlite)})
ctl <- lmerControl(optimizer="bobyqa", optCtrl=list(rhobeg=0.2, rhoend=1e-14, maxfun=1e6), calc.derivs=FALSE)
out <- list()
add <- function(name, m) {
  vc <- as.data.frame(VarCorr(m)); cm <- coef(summary(m))
  V <- as.matrix(VarCorr(m)[[1]])
  cv <- attr(ranef(m, condVar=TRUE)[[1]], "postVar")
  out[[name]] <<- list(fixed=unname(cm[,"Estimate"]), errors=unname(cm[,"Std. Error"]), df=unname(cm[,"df"]), covariance=unname(matrix(V,nrow(V))), residual=sigma(m)^2,
     log_likelihood=as.numeric(logLik(m)), effects=unname(as.matrix(ranef(m)[[1]])), effect_errors=unname(t(apply(cv,3,function(a) sqrt(diag(as.matrix(a)))))))
}
for (method in c("REML","ML")) { r <- method=="REML"
 add(paste0("sleepstudy slopes ",method), lmer(Reaction ~ Days + (Days|Subject), sleepstudy, REML=r, control=ctl))
 add(paste0("sleepstudy intercepts ",method), lmer(Reaction ~ Days + (1|Subject), sleepstudy, REML=r, control=ctl))
 add(paste0("sleepstudy slopes alone ",method), lmer(Reaction ~ Days + (0+Days|Subject), sleepstudy, REML=r, control=ctl))
 add(paste0("dyestuff ",method), lmer(Yield ~ 1 + (1|Batch), Dyestuff, REML=r, control=ctl))
 add(paste0("dyestuff2 ",method), lmer(Yield ~ 1 + (1|Batch), Dyestuff2, REML=r, control=ctl))
 u <- sleepstudy[(seq_len(180)*7) %% 180 > 60 | sleepstudy$Days < 2,]
 add(paste0("sleepstudy unbalanced ",method), lmer(Reaction ~ Days + I(Days^2) + (Days|Subject), u, REML=r, control=ctl))
}
dat <- escalc(measure="RR", ai=tpos, bi=tneg, ci=cpos, di=cneg, data=dat.bcg)
meta <- list(values=as.numeric(dat$yi), variances=as.numeric(dat$vi))
for (method in c("REML","DL","PM")) { 
 z <- rma(yi, vi, data=dat, method=method, control=list(threshold=1e-14,maxiter=1000)); t <- rma(yi, vi, data=dat, method=method, test="knha", control=list(threshold=1e-14,maxiter=1000)); f <- rma(yi,vi,data=dat,method="FE"); ci <- confint(z, control=list(tol=1e-14))
 meta[[method]] <- list(tau2=z$tau2, b=as.numeric(z$b), se=z$se, lower=z$ci.lb, upper=z$ci.ub, p=z$pval, se_knha=t$se, lower_knha=t$ci.lb, upper_knha=t$ci.ub, p_knha=t$pval, q=z$QE, qp=z$QEp, i2=z$I2, tau2_lower=ci$random[1,2], tau2_upper=ci$random[1,3], fixed=as.numeric(f$b), fixed_se=f$se)
}
write(toJSON(list(lme4=out, metafor=meta, versions=list(lme4=as.character(packageVersion("lme4")), lmerTest=as.character(packageVersion("lmerTest")), metafor=as.character(packageVersion("metafor")))), digits=I(15), auto_unbox=TRUE, pretty=FALSE), "reference.json")
write.csv(sleepstudy, "sleepstudy.csv", row.names=FALSE, quote=FALSE)
write.csv(Dyestuff, "dyestuff.csv", row.names=FALSE, quote=FALSE)
write.csv(Dyestuff2, "dyestuff2.csv", row.names=FALSE, quote=FALSE)
